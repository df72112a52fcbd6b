package nodekeeper

import (
	"log/slog"
	"sync"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// problemKey has what distinguishes problems.
type problemKey struct{ errorID, message, pool, device, claimUID string }

// problemLog returns the default of DeviceDriver.Problems.
func problemLog(log *slog.Logger) func([]*devices.Problem) {
	var mu sync.Mutex
	known := map[problemKey]bool{}
	return func(problems []*devices.Problem) {
		mu.Lock()
		defer mu.Unlock()
		present := map[problemKey]bool{}
		for _, each := range problems {
			key := problemKey{each.ErrorId, each.Message, each.Pool, each.Device, each.ClaimUid}
			present[key] = true
			if !known[key] {
				key.warn(log, "the agent reports a problem")
			}
		}
		for key := range known {
			if !present[key] {
				key.warn(log, "a problem has ended")
			}
		}
		known = present
	}
}

func (k problemKey) warn(log *slog.Logger, what string) {
	log.Warn(what, "errorId", k.errorID, "problem", k.message, "pool", k.pool, "device", k.device, "claimUid", k.claimUID)
}
