package nodekeeper

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// syncBuffer may be written by a plugin while the test reads it.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(line)
}

func TestProblemsAreLoggedOnceWithoutAFunctionForThem(t *testing.T) {
	var log syncBuffer
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		options.Log = slog.New(slog.NewTextHandler(&log, nil))
		return ServeDeviceDriver(ctx, options, DeviceDriver{Devices: fixed(poolOf("gpu-0", "gpu-1"))})
	})
	client := devices.NewDriverFeedbackClient(plugin.connect())
	of := func(device string) *devices.Problem {
		return &devices.Problem{ErrorId: "NK1503", Message: "quarantined", Pool: "node-1", Device: device}
	}
	for _, problems := range [][]*devices.Problem{{of("gpu-0")}, {of("gpu-0"), of("gpu-1")}, {of("gpu-1")}} {
		if _, err := client.ReportProblems(t.Context(), &devices.ReportProblemsRequest{Problems: problems}); err != nil {
			t.Fatal(err)
		}
	}
	lines := regexp.MustCompile(`(?m)level=WARN msg="(.*?)".* device=(\S+)`).FindAllStringSubmatch(log.String(), -1)
	var logged []string
	for _, line := range lines {
		logged = append(logged, line[1]+" "+line[2])
	}
	const wanted = "the agent reports a problem gpu-0, the agent reports a problem gpu-1, a problem has ended gpu-0"
	if found := strings.Join(logged, ", "); found != wanted {
		t.Errorf("%s\n%s", found, log.String())
	}
}
