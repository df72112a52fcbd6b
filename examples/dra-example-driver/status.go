package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// byClaim has the status of devices by UID of the claim.
type byClaim map[string][]*devices.DeviceStatus

// statuses are those of all allocated devices: of prepared claims, and of those whose pods wait to be bound.
type statuses struct {
	mu                sync.Mutex
	prepared, waiting byClaim
	value             *nodekeeper.Value[*devices.DeviceStatus]
}

func newStatuses() *statuses {
	return &statuses{prepared: byClaim{}, waiting: byClaim{}, value: nodekeeper.NewValue[*devices.DeviceStatus]()}
}

// change reports the statuses after a change of them.
func (s *statuses) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	all := maps.Clone(s.waiting)
	maps.Copy(all, s.prepared)
	s.value.Set(slices.Concat(slices.Collect(maps.Values(all))...))
}

// statusOf tells what a claim's devices are, also to those who read it once a device is gone, and that they are ready.
func (d *driver) statusOf(known map[string]*devices.Device, claim *devices.Claim, allocated []*devices.AllocatedDevice) (all []*devices.DeviceStatus) {
	for _, each := range allocated {
		status := &devices.DeviceStatus{ClaimUid: claim.GetUid(), Pool: each.Pool, Device: each.Device, ShareId: each.ShareId}
		if d.gpuStatus {
			attributes := known[each.Device].GetAttributes()
			data, _ := json.Marshal(map[string]map[string]string{
				"uuid":          {"string": attributes["uuid"].GetString_()},
				"model":         {"string": attributes["model"].GetString_()},
				"driverVersion": {"version": attributes["driverVersion"].GetVersion()},
			})
			status.Data = string(data)
		}
		for _, condition := range each.BindingConditions {
			status.Conditions = append(status.Conditions, &devices.Condition{
				Type: condition, Status: "True", Reason: "Ready", Message: "Device is ready",
			})
		}
		all = append(all, status)
	}
	return all
}

// restore reports the status of claims that were prepared before this instance started.
func (d *driver) restore(ctx context.Context, claims []*devices.PreparedClaim) (prepareAgain []string, err error) {
	_, known, err := d.inventory(ctx)
	if err != nil {
		return nil, err
	}
	d.statuses.change(func() {
		clear(d.statuses.prepared)
		for _, each := range claims {
			d.statuses.prepared[each.Claim.GetUid()] = d.statusOf(known, each.Claim, each.Devices)
		}
	})
	return nil, nil
}

// bind reports the binding conditions of devices whose pods wait for them. Nothing has to be done for them.
func (d *driver) bind(ctx context.Context, claims []*devices.ClaimToBind) error {
	_, known, err := d.inventory(ctx)
	if err != nil {
		return err
	}
	d.statuses.change(func() {
		clear(d.statuses.waiting)
		for _, each := range claims {
			d.statuses.waiting[each.Claim.GetUid()] = d.statusOf(known, each.Claim, each.Devices)
		}
	})
	return nil
}
