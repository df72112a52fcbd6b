package nodekeeper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

func poolOf(names ...string) []*devices.Pool {
	pool := &devices.Pool{}
	for _, name := range names {
		pool.Devices = append(pool.Devices, &devices.Device{Name: name})
	}
	return []*devices.Pool{pool}
}

// untilDone is a report that has no more to send.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func fixed(pools []*devices.Pool) Report[*devices.Pool] {
	return func(ctx context.Context, send func([]*devices.Pool)) error {
		send(pools)
		return untilDone(ctx)
	}
}

func TestDriverListsWhatItServesInBothContracts(t *testing.T) {
	full := DeviceDriver{
		Devices: fixed(nil),
		Health:  func(ctx context.Context, _ func([]*devices.DeviceHealth)) error { return untilDone(ctx) },
		Status:  func(ctx context.Context, _ func([]*devices.DeviceStatus)) error { return untilDone(ctx) },
		Prepare: func(context.Context, *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
			return nil, nil
		},
		Unprepare:   func(context.Context, *devices.UnprepareDevicesRequest) error { return nil },
		Allocations: func(context.Context, []*devices.ClaimToBind) error { return nil },
		Problems:    func([]*devices.Problem) {},
	}
	const older, newer = "nodekeeper.devices.v1alpha1", "nodekeeper.devices.v1alpha2"
	for name, each := range map[string]struct {
		driver DeviceDriver
		wanted []string
	}{
		"devices alone":  {DeviceDriver{Devices: fixed(nil)}, []string{older, newer, newer + ".DriverFeedback"}},
		"kubelet plugin": {DeviceDriver{Devices: fixed(nil), OwnKubeletPlugin: true}, []string{older, newer, newer + ".DriverFeedback", "v1.DRAPlugin"}},
		"everything": {full, []string{
			older, newer,
			older + ".DevicePreparation", newer + ".DevicePreparation",
			older + ".DeviceHealthReport", newer + ".DeviceHealthReport",
			newer + ".DeviceStatusReport", newer + ".DeviceBinding", newer + ".DriverFeedback",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
				return ServeDeviceDriver(ctx, options, each.driver)
			})
			info := register(t, plugin.connect())
			if info.Type != "DRAPlugin" || info.Name != "d.example.com" || info.Endpoint != "" {
				t.Errorf("registered as %v", info)
			}
			if !slices.Equal(info.SupportedVersions, each.wanted) {
				t.Errorf("versions %q", info.SupportedVersions)
			}
			until(t, "the driver knows that it is registered", func() bool { return plugin.registered.Load() == 1 })
		})
	}
}

func TestDriverWithConflictingFunctionsIsRefused(t *testing.T) {
	prepare := func(context.Context, *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
		return nil, nil
	}
	unprepare := func(context.Context, *devices.UnprepareDevicesRequest) error { return nil }
	for wanted, driver := range map[string]DeviceDriver{
		"Devices is missing":         {},
		"has both Prepare and":       {Devices: fixed(nil), Prepare: prepare},
		"with its own kubelet":       {Devices: fixed(nil), Prepare: prepare, Unprepare: unprepare, OwnKubeletPlugin: true},
		"Status needs Prepare":       {Devices: fixed(nil), Status: func(context.Context, func([]*devices.DeviceStatus)) error { return nil }},
		"Allocations needs Status":   {Devices: fixed(nil), Allocations: func(context.Context, []*devices.ClaimToBind) error { return nil }},
		"RestoreClaims has Prepare ": {Devices: fixed(nil), RestoreClaims: func(context.Context, []*devices.PreparedClaim) ([]string, error) { return nil, nil }},
	} {
		err := ServeDeviceDriver(t.Context(), Options{Name: "d.example.com", SocketDir: t.TempDir()}, driver)
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%q: %v", wanted, err)
		}
	}
}

func TestStreamsOfBothContractsHaveTheLatestDevices(t *testing.T) {
	next := make(chan []*devices.Pool)
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{Devices: func(ctx context.Context, send func([]*devices.Pool)) error {
			for {
				select {
				case pools := <-next:
					send(pools)
				case <-ctx.Done():
					return nil
				}
			}
		}})
	})
	connection := plugin.connect()
	next <- poolOf("first")
	for _, contract := range []string{"v1alpha1", "v1alpha2"} {
		stream, err := connection.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/nodekeeper.devices."+contract+".DeviceDriver/ListAndWatchDevices")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.SendMsg(&devices.ListAndWatchDevicesRequest{}), stream.CloseSend()); err != nil {
			t.Fatal(err)
		}
		receive := func() string {
			response := &devices.ListAndWatchDevicesResponse{}
			if err := stream.RecvMsg(response); err != nil {
				t.Fatal(err)
			}
			return response.Pools[0].Devices[0].Name
		}
		receive()
		next <- poolOf("of " + contract)
		if name := receive(); name != "of "+contract {
			t.Errorf("%s has %s", contract, name)
		}
	}
}

func TestDevicesCanDependOnTheNodeName(t *testing.T) {
	node := NewNodeName()
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{
			Node: node,
			Devices: func(ctx context.Context, send func([]*devices.Pool)) error {
				name, err := node.Get(ctx)
				if err == nil {
					send(poolOf("gpu-of-" + name))
				}
				return err
			},
		})
	})
	client := devices.NewDeviceDriverClient(plugin.connect())
	stream, err := client.ListAndWatchDevices(t.Context(), &devices.ListAndWatchDevicesRequest{NodeName: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	if response, err := stream.Recv(); err != nil || response.Pools[0].Devices[0].Name != "gpu-of-worker-1" {
		t.Errorf("%v: %v", response, err)
	}
}

func TestFailedReportReachesTheAgentAndStartsAgain(t *testing.T) {
	attempt := 0
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{Devices: func(ctx context.Context, send func([]*devices.Pool)) error {
			if attempt++; attempt == 1 {
				send(poolOf("gpu-0"))
				return errors.New("the bus is gone: " + strings.Repeat("x", 1_000))
			}
			send(poolOf("gpu-1"))
			return nil
		}})
	})
	client := devices.NewDeviceDriverClient(plugin.connect())
	until(t, "the failure and the value after it", func() bool {
		stream, err := client.ListAndWatchDevices(t.Context(), &devices.ListAndWatchDevicesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		response, err := stream.Recv()
		if err == nil && response.Pools[0].Devices[0].Name == "gpu-0" {
			_, err = stream.Recv()
		}
		if err == nil {
			return true
		}
		failure := status.Convert(err)
		if failure.Code() != codes.Internal || !strings.HasPrefix(failure.Message(), "the bus is gone: ") || len(failure.Message()) != 500 {
			t.Fatal(err)
		}
		return false
	})
}

func TestPanicsOfTheAuthorAreFailuresOfTheirReportAndCall(t *testing.T) {
	attempt := 0
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{
			Devices: func(_ context.Context, send func([]*devices.Pool)) error {
				if attempt++; attempt == 1 {
					panic("no bus")
				}
				send(poolOf("gpu-1"))
				return nil
			},
			Prepare: func(context.Context, *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
				var none *devices.PrepareDevicesResponse
				none.Devices[0] = nil
				return none, nil
			},
			Unprepare: func(context.Context, *devices.UnprepareDevicesRequest) error { return nil },
		})
	})
	connection := plugin.connect()
	_, err := devices.NewDevicePreparationClient(connection).PrepareDevices(t.Context(), &devices.PrepareDevicesRequest{})
	if failure := status.Convert(err); failure.Code() != codes.Internal || !strings.HasPrefix(failure.Message(), "panic: runtime error: ") {
		t.Errorf("a call that panics: %v", err)
	}
	client := devices.NewDeviceDriverClient(connection)
	until(t, "the value after the panic", func() bool {
		stream, err := client.ListAndWatchDevices(t.Context(), &devices.ListAndWatchDevicesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		response, err := stream.Recv()
		return err == nil && response.Pools[0].Devices[0].Name == "gpu-1"
	})
}

func TestEditsThatAnOlderAgentWouldIgnoreFailItsCall(t *testing.T) {
	var answer *devices.PrepareDevicesResponse
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{
			Devices: fixed(poolOf("gpu-0")),
			Prepare: func(context.Context, *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
				return answer, nil
			},
			Unprepare: func(context.Context, *devices.UnprepareDevicesRequest) error { return nil },
		})
	})
	connection := plugin.connect()
	call := func(contract string) error {
		path := "/nodekeeper.devices." + contract + ".DevicePreparation/PrepareDevices"
		return connection.Invoke(t.Context(), path, &devices.PrepareDevicesRequest{}, &devices.PrepareDevicesResponse{})
	}
	of := func(edits *devices.ContainerEdits) *devices.PrepareDevicesResponse {
		return &devices.PrepareDevicesResponse{Devices: []*devices.PreparedDevice{{Device: "gpu-0"}, {Device: "gpu-1", Edits: edits}}}
	}
	for name, response := range map[string]*devices.PrepareDevicesResponse{
		"additional_gids": of(&devices.ContainerEdits{AdditionalGids: []uint32{44}}),
		"intel_rdt":       of(&devices.ContainerEdits{IntelRdt: &devices.IntelRdt{ClosId: "gold"}}),
		"net_devices":     of(&devices.ContainerEdits{NetDevices: []*devices.NetDevice{{HostInterfaceName: "eth1", Name: "eth1"}}}),
		"the whole claim": {Edits: &devices.ContainerEdits{Env: []string{"A=b"}}},
	} {
		answer = response
		if err := call("v1alpha1"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err := call("v1alpha2"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	answer = of(&devices.ContainerEdits{Env: []string{"A=b"}})
	if err := call("v1alpha1"); err != nil {
		t.Error(err)
	}
}

func TestClaims(t *testing.T) {
	request := &devices.PrepareDevicesRequest{
		Claim:   &devices.Claim{Namespace: "default", Name: "train", Uid: "u1", Labels: map[string]string{"team": "vision"}},
		Devices: []*devices.AllocatedDevice{{Request: "r", Pool: "node-1", Device: "gpu-0"}},
	}
	var restored []*devices.PreparedClaim
	var problems []*devices.Problem
	unprepared := ""
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{
			Devices: fixed(poolOf("gpu-0")),
			Prepare: func(_ context.Context, got *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
				if !proto.Equal(got, request) {
					return nil, errors.New("mode \"warp\" is unknown")
				}
				edits := &devices.ContainerEdits{Env: []string{"GPU=0"}}
				return &devices.PrepareDevicesResponse{Devices: []*devices.PreparedDevice{{Request: "r", Pool: "node-1", Device: "gpu-0", Edits: edits}}}, nil
			},
			Unprepare: func(_ context.Context, got *devices.UnprepareDevicesRequest) error {
				unprepared = got.Claim.Uid
				return status.Error(codes.FailedPrecondition, "busy")
			},
			RestoreClaims: func(_ context.Context, claims []*devices.PreparedClaim) ([]string, error) {
				restored = claims
				return []string{"u1"}, nil
			},
			Problems: func(got []*devices.Problem) { problems = got },
		})
	})
	connection := plugin.connect()
	client := devices.NewDevicePreparationClient(connection)
	again, err := client.RestoreClaims(t.Context(), &devices.RestoreClaimsRequest{Claims: []*devices.PreparedClaim{{Claim: request.Claim, IsPrepared: true}}})
	if err != nil || !slices.Equal(again.PrepareAgain, []string{"u1"}) || len(restored) != 1 || !restored[0].IsPrepared {
		t.Errorf("restored %v, %v: %v", restored, again, err)
	}
	prepared := &devices.PrepareDevicesResponse{}
	if err := connection.Invoke(t.Context(), "/nodekeeper.devices.v1alpha1.DevicePreparation/PrepareDevices", request, prepared); err != nil {
		t.Fatal(err)
	}
	if env := prepared.Devices[0].Edits.Env; !slices.Equal(env, []string{"GPU=0"}) {
		t.Errorf("edits %v", env)
	}
	_, err = client.PrepareDevices(t.Context(), &devices.PrepareDevicesRequest{})
	if failure := status.Convert(err); failure.Code() != codes.Internal || failure.Message() != `mode "warp" is unknown` {
		t.Errorf("a failed preparation: %v", err)
	}
	_, err = client.UnprepareDevices(t.Context(), &devices.UnprepareDevicesRequest{Claim: request.Claim})
	if status.Code(err) != codes.FailedPrecondition || unprepared != "u1" {
		t.Errorf("unprepared %q: %v", unprepared, err)
	}
	if _, err := devices.NewDriverFeedbackClient(connection).ReportProblems(t.Context(), &devices.ReportProblemsRequest{Problems: []*devices.Problem{{ErrorId: "NK1501"}}}); err != nil {
		t.Fatal(err)
	}
	if len(problems) != 1 || problems[0].ErrorId != "NK1501" {
		t.Errorf("problems %v", problems)
	}
}

func TestAllocations(t *testing.T) {
	var told []*devices.ClaimToBind
	var failure error
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{
			Devices: fixed(poolOf("gpu-0")),
			Status:  func(ctx context.Context, _ func([]*devices.DeviceStatus)) error { return untilDone(ctx) },
			Allocations: func(_ context.Context, claims []*devices.ClaimToBind) error {
				told = claims
				return failure
			},
		})
	})
	client := devices.NewDeviceBindingClient(plugin.connect())
	request := &devices.ReportAllocationsRequest{Claims: []*devices.ClaimToBind{{
		Claim:       &devices.Claim{Uid: "u1"},
		Devices:     []*devices.AllocatedDevice{{Device: "gpu-0", BindingConditions: []string{"Attached"}}},
		AllocatedAt: 1_000,
	}}}
	if _, err := client.ReportAllocations(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !proto.Equal(told[0], request.Claims[0]) {
		t.Errorf("told of %v", told)
	}
	failure = errors.New("the switch is down")
	_, err := client.ReportAllocations(t.Context(), &devices.ReportAllocationsRequest{})
	if status.Convert(err).Message() != "the switch is down" || len(told) != 0 {
		t.Errorf("told of %v: %v", told, err)
	}
}

func TestStatusBeginsWhenTheAgentAsksForIt(t *testing.T) {
	var begun atomic.Int32
	var wasRestored atomic.Bool
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{
			Devices: fixed(poolOf("gpu-0")),
			Status: func(ctx context.Context, send func([]*devices.DeviceStatus)) error {
				begun.Add(1)
				var known []*devices.DeviceStatus
				if wasRestored.Load() {
					known = append(known, &devices.DeviceStatus{ClaimUid: "u1", Device: "gpu-0"})
				}
				send(known)
				return untilDone(ctx)
			},
			Prepare: func(context.Context, *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
				return nil, nil
			},
			Unprepare: func(context.Context, *devices.UnprepareDevicesRequest) error { return nil },
			RestoreClaims: func(context.Context, []*devices.PreparedClaim) ([]string, error) {
				wasRestored.Store(true)
				return nil, nil
			},
		})
	})
	connection := plugin.connect()
	// The devices were sent, so that reports that begin at once have begun.
	devicesStream, err := devices.NewDeviceDriverClient(connection).ListAndWatchDevices(t.Context(), &devices.ListAndWatchDevicesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := devicesStream.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := devices.NewDevicePreparationClient(connection).RestoreClaims(t.Context(), &devices.RestoreClaimsRequest{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		stream, err := devices.NewDeviceStatusReportClient(connection).WatchDeviceStatus(t.Context(), &devices.WatchDeviceStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if response, err := stream.Recv(); err != nil || len(response.Devices) != 1 {
			t.Errorf("status %v: %v", response, err)
		}
	}
	if begun.Load() != 1 {
		t.Errorf("the report began %d times", begun.Load())
	}
}
