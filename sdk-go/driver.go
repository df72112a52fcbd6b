package nodekeeper

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"google.golang.org/grpc"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// DeviceDriver has the functions of a device driver. Those other than Devices are optional; Prepare and Unprepare are set
// together. Without them the devices need no preparation.
type DeviceDriver struct {
	// Devices sends all pools with all devices. An empty list removes all devices.
	Devices Report[*devices.Pool]
	// Health sends the health of all devices.
	Health Report[*devices.DeviceHealth]
	// Status sends the status of all allocated devices. The agent writes it to their ResourceClaims; a device that is left out
	// has no status. It begins when the agent asks for it, after RestoreClaims. It needs Prepare and Unprepare, or Allocations,
	// which get the UIDs of claims.
	Status Report[*devices.DeviceStatus]
	// Allocations gets all claims that have devices with binding conditions and are not prepared yet: from when a pod waits to
	// be bound to this node until Prepare has succeeded, or the claim is deallocated. It is called when the agent connects and
	// after each change, and again if it fails. A claim that is neither in the last list nor prepared was deallocated: the
	// driver undoes what it did for it. It must return within 10 s, so that it starts work that takes longer and returns. It
	// needs Status, which sends the conditions.
	Allocations func(ctx context.Context, claims []*devices.ClaimToBind) error
	// Prepare prepares the devices of a claim, and returns what containers need to use them. It is idempotent, because it
	// is called again for a claim. The message of its error reaches the Events of the pod.
	Prepare func(ctx context.Context, request *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error)
	// Unprepare undoes what Prepare did. It is idempotent, and is also called for claims that were never prepared.
	Unprepare func(ctx context.Context, request *devices.UnprepareDevicesRequest) error
	// RestoreClaims gets all recorded claims each time the agent connects, if there are any, so that the driver needs no
	// checkpoint of its own. It returns the UIDs of prepared claims whose preparation is lost: they are prepared again. Without it, none are.
	RestoreClaims func(ctx context.Context, claims []*devices.PreparedClaim) (prepareAgain []string, err error)
	// Problems gets what the agent refuses of the driver, whenever it changes. An empty list: nothing. Without it, each new
	// problem is logged as a warning, and once more when it has ended.
	Problems func(problems []*devices.Problem)
	// Node gets the node's name when the agent asks for the devices, which does not wait for other calls.
	Node *NodeName
	// OwnKubeletPlugin is set if the driver registers with the kubelet itself, and the agent only publishes its devices.
	OwnKubeletPlugin bool
}

// Packages in which a driver serves the same: an older agent knows only the first, which has no status and feedback.
const (
	olderContract = "nodekeeper.devices.v1alpha1"
	contract      = "nodekeeper.devices.v1alpha2"
)

// ServeDeviceDriver serves a driver until the context ends. The agent publishes its devices as ResourceSlices and serves as
// the kubelet's DRA plugin on the driver's behalf. The driver needs no access to the API server.
func ServeDeviceDriver(ctx context.Context, options Options, driver DeviceDriver) error {
	if driver.Problems == nil {
		driver.Problems = problemLog(options.log())
	}
	kind, err := driver.kind()
	if err != nil {
		return err
	}
	return serve(ctx, options, kind)
}

// service is a service of the driver, with what implements it for a plugin that stops with the context.
type service struct {
	description grpc.ServiceDesc
	implement   func(ctx context.Context) any
	// isNew: older agents do not know it.
	isNew bool
}

func (d DeviceDriver) kind() (kind, error) {
	if d.Devices == nil {
		return kind{}, errors.New("Devices is missing")
	}
	if (d.Prepare == nil) != (d.Unprepare == nil) {
		return kind{}, errors.New("a driver has both Prepare and Unprepare, or neither")
	}
	if d.RestoreClaims != nil && d.Prepare == nil {
		return kind{}, errors.New("a driver with RestoreClaims has Prepare and Unprepare")
	}
	if d.Status != nil && d.Prepare == nil && d.Allocations == nil {
		return kind{}, errors.New("Status needs Prepare and Unprepare, or Allocations: it is of devices that are prepared, or wait to be bound")
	}
	if d.Allocations != nil && d.Status == nil {
		return kind{}, errors.New("Allocations needs Status, which sends the binding conditions")
	}
	if d.OwnKubeletPlugin && (d.Prepare != nil || d.Health != nil || d.Status != nil) {
		return kind{}, errors.New("a driver with its own kubelet plugin prepares devices and reports their health and status there")
	}
	k := kind{pluginType: "DRAPlugin", versions: []string{olderContract, contract}}
	pools := follow(&k, d.Devices, "devices")
	services := []service{{
		description: devices.DeviceDriver_ServiceDesc,
		implement:   func(ctx context.Context) any { return deviceService{pools: pools, node: d.Node, plugin: ctx} },
	}}
	if d.Prepare != nil {
		services = append(services, service{
			description: devices.DevicePreparation_ServiceDesc,
			implement:   func(context.Context) any { return preparationService{driver: d} },
		})
	}
	if d.Health != nil {
		health := follow(&k, d.Health, "health")
		services = append(services, service{
			description: devices.DeviceHealthReport_ServiceDesc,
			implement:   func(ctx context.Context) any { return healthService{health: health, plugin: ctx} },
		})
	}
	if d.Status != nil {
		asked := make(chan struct{})
		statuses := follow(&k, d.Status.after(asked), "status")
		onAsked := sync.OnceFunc(func() { close(asked) })
		services = append(services, service{
			description: devices.DeviceStatusReport_ServiceDesc,
			implement: func(ctx context.Context) any {
				return statusService{statuses: statuses, onAsked: onAsked, plugin: ctx}
			},
			isNew: true,
		})
	}
	if d.Allocations != nil {
		services = append(services, service{
			description: devices.DeviceBinding_ServiceDesc,
			implement:   func(context.Context) any { return bindingService{allocations: d.Allocations} },
			isNew:       true,
		})
	}
	services = append(services, service{
		description: devices.DriverFeedback_ServiceDesc,
		implement:   func(context.Context) any { return feedbackService{problems: d.Problems} },
		isNew:       true,
	})
	for _, each := range services[1:] {
		k.versions = append(k.versions, each.names()...)
	}
	if d.OwnKubeletPlugin {
		k.versions = append(k.versions, "v1.DRAPlugin")
	}
	k.addServices = func(ctx context.Context, server *grpc.Server) {
		for _, each := range services {
			for _, name := range each.names() {
				description := each.description
				description.ServiceName = name
				server.RegisterService(&description, each.implement(ctx))
			}
		}
	}
	return k, nil
}

// names returns the names under which the service is served. Both contracts have the same numbers of fields.
func (s service) names() []string {
	name := s.description.ServiceName
	if s.isNew {
		return []string{name}
	}
	return []string{olderContract + name[len(contract):], name}
}

// follow runs the report beside the services, and returns its values.
func follow[T any](k *kind, report Report[T], name string) *latest[[]T] {
	values := newLatest[[]T]()
	k.reports = append(k.reports, func(ctx context.Context, log *slog.Logger) {
		report.run(ctx, values, log.With("report", name))
	})
	return values
}
