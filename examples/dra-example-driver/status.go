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

// statuses are those of all allocated devices.
type statuses struct {
	mu      sync.Mutex
	byClaim byClaim
	value   *nodekeeper.Value[*devices.DeviceStatus]
}

func newStatuses() *statuses {
	return &statuses{byClaim: byClaim{}, value: nodekeeper.NewValue[*devices.DeviceStatus]()}
}

// change reports the statuses after a change of them.
func (s *statuses) change(change func(byClaim byClaim)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.byClaim)
	s.value.Set(slices.Concat(slices.Collect(maps.Values(s.byClaim))...))
}

// statusOf tells what a claim's devices are, also to those who read it once a device is gone.
func (d *driver) statusOf(claim *devices.Claim, allocated []*devices.AllocatedDevice) (all []*devices.DeviceStatus) {
	for _, each := range allocated {
		attributes := d.devices[each.Device].GetAttributes()
		data, _ := json.Marshal(map[string]map[string]string{
			"uuid":          {"string": attributes["uuid"].GetString_()},
			"model":         {"string": attributes["model"].GetString_()},
			"driverVersion": {"version": attributes["driverVersion"].GetVersion()},
		})
		all = append(all, &devices.DeviceStatus{
			ClaimUid: claim.GetUid(), Pool: each.Pool, Device: each.Device, ShareId: each.ShareId, Data: string(data),
		})
	}
	return all
}

// restore reports the status of claims that were prepared before this instance started.
func (d *driver) restore(_ context.Context, claims []*devices.PreparedClaim) (prepareAgain []string, err error) {
	d.statuses.change(func(byClaim byClaim) {
		clear(byClaim)
		for _, each := range claims {
			byClaim[each.Claim.GetUid()] = d.statusOf(each.Claim, each.Devices)
		}
	})
	return nil, nil
}
