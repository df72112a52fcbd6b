package nodekeeper

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// stream sends each value as a response until the call or the plugin ends.
func stream[T, R any](values *latest[[]T], plugin context.Context, call grpc.ServerStreamingServer[R], response func([]T) *R) error {
	ctx, release := either(call.Context(), plugin)
	defer release()
	return values.each(ctx, func(value []T) error { return call.Send(response(value)) })
}

type deviceService struct {
	devices.UnimplementedDeviceDriverServer
	pools  *latest[[]*devices.Pool]
	node   *NodeName
	plugin context.Context
}

func (s deviceService) ListAndWatchDevices(request *devices.ListAndWatchDevicesRequest, call grpc.ServerStreamingServer[devices.ListAndWatchDevicesResponse]) error {
	if s.node != nil {
		s.node.Set(request.NodeName)
	}
	return stream(s.pools, s.plugin, call, func(pools []*devices.Pool) *devices.ListAndWatchDevicesResponse {
		return &devices.ListAndWatchDevicesResponse{Pools: pools}
	})
}

type healthService struct {
	devices.UnimplementedDeviceHealthReportServer
	health *latest[[]*devices.DeviceHealth]
	plugin context.Context
}

func (s healthService) WatchDeviceHealth(_ *devices.WatchDeviceHealthRequest, call grpc.ServerStreamingServer[devices.WatchDeviceHealthResponse]) error {
	return stream(s.health, s.plugin, call, func(health []*devices.DeviceHealth) *devices.WatchDeviceHealthResponse {
		return &devices.WatchDeviceHealthResponse{Devices: health}
	})
}

type statusService struct {
	devices.UnimplementedDeviceStatusReportServer
	statuses *latest[[]*devices.DeviceStatus]
	onAsked  func()
	plugin   context.Context
}

func (s statusService) WatchDeviceStatus(_ *devices.WatchDeviceStatusRequest, call grpc.ServerStreamingServer[devices.WatchDeviceStatusResponse]) error {
	s.onAsked()
	return stream(s.statuses, s.plugin, call, func(statuses []*devices.DeviceStatus) *devices.WatchDeviceStatusResponse {
		return &devices.WatchDeviceStatusResponse{Devices: statuses}
	})
}

type preparationService struct {
	devices.UnimplementedDevicePreparationServer
	driver DeviceDriver
}

func (s preparationService) PrepareDevices(ctx context.Context, request *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
	response, err := s.driver.Prepare(ctx, request)
	if err != nil {
		return nil, callError(err)
	}
	if method, _ := grpc.Method(ctx); strings.HasPrefix(method, "/"+olderContract+".") {
		if err := checkOlderAgent(response); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// checkOlderAgent fails if the answer has edits that an agent of v1alpha1 would ignore: the container would start without them.
func checkOlderAgent(response *devices.PrepareDevicesResponse) error {
	refuse := func(what string) error {
		return status.Errorf(codes.FailedPrecondition, "the driver's answer has %s, which this Nodekeeper agent does not know: update the agent to one of %s", what, contract)
	}
	if response.GetEdits() != nil {
		return refuse("edits of the whole claim")
	}
	for _, device := range response.GetDevices() {
		switch edits := device.GetEdits(); {
		case len(edits.GetAdditionalGids()) > 0:
			return refuse("additional_gids")
		case edits.GetIntelRdt() != nil:
			return refuse("intel_rdt")
		case len(edits.GetNetDevices()) > 0:
			return refuse("net_devices")
		}
	}
	return nil
}

func (s preparationService) UnprepareDevices(ctx context.Context, request *devices.UnprepareDevicesRequest) (*devices.UnprepareDevicesResponse, error) {
	return &devices.UnprepareDevicesResponse{}, callError(s.driver.Unprepare(ctx, request))
}

func (s preparationService) RestoreClaims(ctx context.Context, request *devices.RestoreClaimsRequest) (*devices.RestoreClaimsResponse, error) {
	if s.driver.RestoreClaims == nil {
		return &devices.RestoreClaimsResponse{}, nil
	}
	again, err := s.driver.RestoreClaims(ctx, request.Claims)
	if err != nil {
		return nil, callError(err)
	}
	return &devices.RestoreClaimsResponse{PrepareAgain: again}, nil
}

type bindingService struct {
	devices.UnimplementedDeviceBindingServer
	allocations func(context.Context, []*devices.ClaimToBind) error
}

func (s bindingService) ReportAllocations(ctx context.Context, request *devices.ReportAllocationsRequest) (*devices.ReportAllocationsResponse, error) {
	return &devices.ReportAllocationsResponse{}, callError(s.allocations(ctx, request.Claims))
}

type feedbackService struct {
	devices.UnimplementedDriverFeedbackServer
	problems func([]*devices.Problem)
}

func (s feedbackService) ReportProblems(_ context.Context, request *devices.ReportProblemsRequest) (*devices.ReportProblemsResponse, error) {
	s.problems(request.Problems)
	return &devices.ReportProblemsResponse{}, nil
}

// Prepared returns the answer for an allocated device: what containers need to use it. Nil edits: nothing.
func Prepared(device *devices.AllocatedDevice, edits *devices.ContainerEdits) *devices.PreparedDevice {
	return &devices.PreparedDevice{
		Request: device.Request, Pool: device.Pool, Device: device.Device, ShareId: device.ShareId, Edits: edits,
	}
}
