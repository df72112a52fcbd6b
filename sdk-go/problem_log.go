package nodekeeper

import (
	"log/slog"
	"sync"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// problemKey has no time: an agent that was restarted may know another one.
type problemKey struct{ errorID, message, pool, device, claimUID string }

// problemLog returns a function that logs each new problem once, and once when it has ended.
func problemLog(log *slog.Logger) func([]*devices.Problem) {
	var mu sync.Mutex
	known := map[problemKey]bool{}
	return func(problems []*devices.Problem) {
		mu.Lock()
		defer mu.Unlock()
		present := map[problemKey]bool{}
		for _, each := range problems {
			key := problemKey{each.ErrorId, each.Message, each.Pool, each.Device, each.ClaimUid}
			if !known[key] && !present[key] {
				key.warn(log, "the agent reports a problem: ")
			}
			present[key] = true
		}
		for key := range known {
			if !present[key] {
				key.warn(log, "a problem has ended: ")
			}
		}
		known = present
	}
}

func (k problemKey) warn(log *slog.Logger, what string) {
	fields := []any{"errorId", k.errorID}
	for _, each := range [][2]string{{"pool", k.pool}, {"device", k.device}, {"claimUid", k.claimUID}} {
		if each[1] != "" {
			fields = append(fields, each[0], each[1])
		}
	}
	log.Warn(what+k.message, fields...)
}
