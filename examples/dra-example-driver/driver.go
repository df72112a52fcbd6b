package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// profile is a kind of simulated devices.
type profile interface {
	// pool returns all devices of the node.
	pool(node string) *devices.Pool
	// variables returns those that containers with the device get. It refuses configuration that is wrong.
	variables(device *devices.AllocatedDevice) ([]string, error)
}

// driver serves the devices of a profile.
type driver struct {
	options
	profile
	statuses *statuses
	node     *nodekeeper.NodeName
}

var outsideNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

func newDriver(o options) (served nodekeeper.DeviceDriver, err error) {
	d := &driver{options: o, statuses: newStatuses(), node: nodekeeper.NewNodeName()}
	switch o.profileName {
	case "gpu":
		d.profile = gpus{o}
	case "net":
		d.profile = networkInterfaces{o}
	case "cpu":
		d.profile = numaNodes{o}
	default:
		return served, fmt.Errorf("device profile %q is none of gpu, net and cpu", o.profileName)
	}
	served = nodekeeper.DeviceDriver{
		Node: d.node,
		Devices: func(ctx context.Context, send func([]*devices.Pool)) error {
			node, err := d.node.Get(ctx)
			if err == nil {
				send([]*devices.Pool{d.pool(node)}) // They never change.
			}
			return err
		},
		Prepare:   d.prepare,
		Unprepare: d.unprepare,
	}
	if o.profileName == "gpu" && (o.gpuStatus || o.bindingConditions) {
		served.Status, served.RestoreClaims = d.statuses.value.Report, d.restore
	}
	if o.profileName == "gpu" && o.bindingConditions {
		served.Allocations = d.bind
	}
	return served, nil
}

// inventory returns the node's name and its devices by name.
func (d *driver) inventory(ctx context.Context) (node string, known map[string]*devices.Device, err error) {
	if node, err = d.node.Get(ctx); err != nil {
		return "", nil, err
	}
	known = map[string]*devices.Device{}
	for _, device := range d.pool(node).Devices {
		known[device.Name] = device
	}
	return node, known, nil
}

func (d *driver) prepare(ctx context.Context, request *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
	node, known, err := d.inventory(ctx)
	if err != nil {
		return nil, err
	}
	uid := request.Claim.GetUid()
	isAdmin := slices.ContainsFunc(request.Claim.GetRequests(), (*devices.ClaimRequest).GetAdminAccess)
	response := &devices.PrepareDevicesResponse{Edits: &devices.ContainerEdits{Env: []string{
		"KUBERNETES_NODE_NAME=" + node,
		"DRA_RESOURCE_DRIVER_NAME=" + d.driverName,
		fmt.Sprintf("DRA_ADMIN_ACCESS=%t", isAdmin),
	}}}
	for _, device := range request.Devices {
		if known[device.Device] == nil {
			return nil, fmt.Errorf("there is no device %q", device.Device)
		}
		variables, err := d.variables(device)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", device.Device, err)
		}
		name := strings.ToUpper(outsideNames.ReplaceAllString(device.Device, "_"))
		variables = append(variables, fmt.Sprintf("%s_DEVICE_%s_RESOURCE_CLAIM=%s", strings.ToUpper(d.profileName), name, uid))
		response.Devices = append(response.Devices, nodekeeper.Prepared(device, &devices.ContainerEdits{Env: variables}))
	}
	d.statuses.change(func() { d.statuses.prepared[uid] = d.statusOf(known, request.Claim, request.Devices) })
	return response, nil
}

// Nothing is set up on the node, so there is nothing to undo.
func (d *driver) unprepare(_ context.Context, request *devices.UnprepareDevicesRequest) error {
	d.statuses.change(func() { delete(d.statuses.prepared, request.Claim.GetUid()) })
	return nil
}
