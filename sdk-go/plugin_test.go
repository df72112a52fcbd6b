package nodekeeper

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	eviction "github.com/nodekeeper/nodekeeper/sdk-go/gen/evictionplugin/v1alpha1"
	core "github.com/nodekeeper/nodekeeper/sdk-go/gen/k8s/core/v1"
	rounds "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/eviction/v1alpha1"
	reporter "github.com/nodekeeper/nodekeeper/sdk-go/gen/reporterplugin/v1alpha1"
)

func serveWidgets(ctx context.Context, options Options) error {
	return ServeReporterPlugin(ctx, options, func(ctx context.Context, send func([]*reporter.ReportContent)) error {
		send([]*reporter.ReportContent{CustomNodeResource(Status("resources", map[string]int{"widgets": 4}))})
		return untilDone(ctx)
	})
}

func TestSocketIsOfTheInstanceAndRemovedAtTheEnd(t *testing.T) {
	plugin := start(t, "widgets", serveWidgets)
	plugin.connect()
	names := fileNames(t, plugin.directory)
	if len(names) != 1 || !instancePattern.MatchString(strings.TrimPrefix(names[0], "widgets")) {
		t.Fatalf("files %q", names)
	}
	info, err := os.Lstat(filepath.Join(plugin.directory, names[0]))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info, err)
	}
	if err := plugin.stop(); err != nil {
		t.Error(err)
	}
	if names := fileNames(t, plugin.directory); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
}

func TestSocketThatDisappearsIsServedAgain(t *testing.T) {
	plugin := start(t, "widgets", serveWidgets)
	register(t, plugin.connect())
	if err := os.RemoveAll(plugin.directory); err != nil {
		t.Fatal(err)
	}
	connection := plugin.connect()
	register(t, connection)
	until(t, "it is registered twice", func() bool { return plugin.registered.Load() == 2 })
	response, err := reporter.NewReporterPluginClient(connection).GetReportContent(t.Context(), &reporter.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	content := response.Content[0]
	if content.GroupVersionKind.Kind != "CustomNodeResource" || string(content.Field[0].Value) != `{"widgets":4}` {
		t.Errorf("content %v", content)
	}
}

func TestSocketThatAnotherProcessTookEndsThePlugin(t *testing.T) {
	plugin := start(t, "widgets", serveWidgets)
	plugin.connect()
	path := filepath.Join(plugin.directory, fileNames(t, plugin.directory)[0])
	// Bound beside the plugin's socket, and moved there: there is always a file.
	other, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + ".other", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	other.SetUnlinkOnClose(false)
	if err := os.Rename(path+".other", path); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	err = <-plugin.ended
	plugin.ended <- err
	if err == nil || !strings.Contains(err.Error(), "another process took the socket") {
		t.Errorf("ended with %v", err)
	}
	if !accepts(path) {
		t.Error("the other process's socket was removed")
	}
}

func TestStreamEndsWithThePlugin(t *testing.T) {
	plugin := start(t, "widgets", serveWidgets)
	stream, err := reporter.NewReporterPluginClient(plugin.connect()).ListAndWatchReportContent(t.Context(), &reporter.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	_ = plugin.stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestFixedPathOfAnotherInstanceIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "widgets.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for wanted, options := range map[string]Options{
		"another process serves":     {Name: "widgets", SocketPath: path},
		"107":                        {Name: "widgets", SocketPath: "/tmp/" + strings.Repeat("x", 110)},
		"exists and is not a socket": {Name: "widgets", SocketPath: filepath.Join(fileIn(t), "file")},
		"SocketDir is missing":       {Name: "widgets"},
		"1 to 253 characters":        {Name: "-widgets", SocketDir: t.TempDir()},
	} {
		if err := serveWidgets(t.Context(), options); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", wanted, err)
		}
	}
}

func TestOnlySocketsOfKilledInstancesAreRemoved(t *testing.T) {
	directory := t.TempDir()
	serveAt := func(name string) *net.UnixListener {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(directory, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false)
		return listener
	}
	for _, name := range []string{"widgets-dead0000.sock", "widgets-two-dead0000.sock", "widgets-other.sock"} {
		_ = serveAt(name).Close()
	}
	defer func(live *net.UnixListener) { _ = live.Close() }(serveAt("widgets-11fe0000.sock"))
	if err := os.WriteFile(filepath.Join(directory, "widgets-f11e0000.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removeStaleSockets(directory, "widgets")
	wanted := []string{"widgets-11fe0000.sock", "widgets-f11e0000.sock", "widgets-other.sock", "widgets-two-dead0000.sock"}
	if names := fileNames(t, directory); !slices.Equal(names, wanted) {
		t.Errorf("left: %q", names)
	}
}

func TestUnregisteredPluginSaysWhy(t *testing.T) {
	for wanted, change := range map[string]func(*registrationState){
		"the directory was missing":           func(s *registrationState) { s.wasMissing = true },
		"plugins.allowedUids":                 func(*registrationState) {},
		"has not reported an outcome":         func(s *registrationState) { s.asked() },
		"refused the registration: duplicate": func(s *registrationState) { s.answered(false, "duplicate") },
		"":                                    func(s *registrationState) { s.answered(true, "") },
	} {
		state := registrationState{servedAt: time.Now().Add(-warnAfter)}
		change(&state)
		var log strings.Builder
		for range 2 {
			state.warnIfUnregistered(slog.New(slog.NewTextHandler(&log, nil)), "/s/widgets.sock")
		}
		text := log.String()
		if wanted == "" && text != "" || wanted != "" && (!strings.Contains(text, wanted) || strings.Count(text, "NK1319") != 1) {
			t.Errorf("%q: %s", wanted, text)
		}
	}
}

func TestEvictionPlugin(t *testing.T) {
	requests := make(chan string, 1)
	plugin := start(t, "leaks", func(ctx context.Context, options Options) error {
		return ServeEvictionPlugin(ctx, options, EvictionPlugin{
			RoundRequests: requests,
			ThresholdMet: func(_ context.Context, pods []*core.Pod) (*eviction.ThresholdMetResponse, error) {
				return &eviction.ThresholdMetResponse{MetType: eviction.ThresholdMetType_HARD_MET, ObservedValue: float64(len(pods))}, nil
			},
			TopPods: func(_ context.Context, pods []*core.Pod, topN int, scope string) ([]*core.Pod, error) {
				return pods, nil
			},
			EvictPods: func(context.Context, []*core.Pod) (*eviction.GetEvictPodsResponse, error) { return nil, nil },
			Token:     func(context.Context) (string, error) { return "secret", nil },
		})
	})
	connection := plugin.connect()
	register(t, connection)
	client := eviction.NewEvictionPluginClient(connection)
	// More than gRPC's 4 MiB.
	pods, err := encodePods([]*core.Pod{{Metadata: &core.ObjectMeta{Name: "a", Annotations: map[string]string{"big": strings.Repeat("x", 5<<20)}}}, {}})
	if err != nil {
		t.Fatal(err)
	}
	met, err := client.ThresholdMet(t.Context(), &eviction.GetThresholdMetRequest{ActivePods: pods})
	if err != nil || met.ObservedValue != 2 {
		t.Errorf("threshold %v: %v", met, err)
	}
	top, err := client.GetTopEvictionPods(t.Context(), &eviction.GetTopEvictionPodsRequest{ActivePods: pods[1:], TopN: 1})
	if err != nil || len(top.TargetPods) != 1 {
		t.Errorf("top %v: %v", top, err)
	}
	evicted, err := client.GetEvictPods(t.Context(), &eviction.GetEvictPodsRequest{})
	if err != nil || len(evicted.EvictPods) != 0 {
		t.Errorf("nil of EvictPods: %v: %v", evicted, err)
	}
	token, err := client.GetToken(t.Context(), &eviction.Empty{})
	if err != nil || token.Token != "secret" {
		t.Errorf("token %v: %v", token, err)
	}
	requests <- "free memory fell below 500 MiB"
	request, err := rounds.NewRoundRequestsClient(connection).WaitForRequest(t.Context(), &rounds.WaitForRequestRequest{})
	if err != nil || request.Reason != "free memory fell below 500 MiB" {
		t.Errorf("requested %v: %v", request, err)
	}
}

func TestPendingRoundRequestsAreOneAndAClosedChannelRequestsNone(t *testing.T) {
	requests := make(chan string, 3)
	plugin := start(t, "leaks", func(ctx context.Context, options Options) error {
		return ServeEvictionPlugin(ctx, options, EvictionPlugin{RoundRequests: requests})
	})
	client := rounds.NewRoundRequestsClient(plugin.connect())
	for _, reason := range []string{"a", "b", "c"} {
		requests <- reason
	}
	close(requests)
	for method, err := range unimplemented(t, plugin) {
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
	}
	request, err := client.WaitForRequest(t.Context(), &rounds.WaitForRequestRequest{})
	if err != nil || request.Reason != "c" {
		t.Errorf("requested %v: %v", request, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	request, err = client.WaitForRequest(ctx, &rounds.WaitForRequestRequest{})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("after the channel was closed: %v, %v", request, err)
	}
}

// unimplemented returns the errors of the methods without a function.
func unimplemented(t *testing.T, plugin *served) map[string]error {
	client := eviction.NewEvictionPluginClient(plugin.connect())
	_, met := client.ThresholdMet(t.Context(), &eviction.GetThresholdMetRequest{})
	_, top := client.GetTopEvictionPods(t.Context(), &eviction.GetTopEvictionPodsRequest{})
	_, evicted := client.GetEvictPods(t.Context(), &eviction.GetEvictPodsRequest{})
	_, token := client.GetToken(t.Context(), &eviction.Empty{})
	return map[string]error{"ThresholdMet": met, "GetTopEvictionPods": top, "GetEvictPods": evicted, "GetToken": token}
}

func fileNames(t *testing.T, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func fileIn(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return directory
}
