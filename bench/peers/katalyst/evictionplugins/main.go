// Serves eviction plugins for the rows of eviction in `npm run bench:peers`: plugin-0.sock and so on. Each is under hard
// pressure, so that it is asked for pods in each round, and names none. Requests are received and not decoded, so that
// the way to the plugins is measured. Both sides call them.
//
// It prints a line when it is ready, then answers commands from stdin, one JSON object a line:
//
//	calls   how many calls with pods have been received since the last command, and their bytes
//
// They are in Go because katalyst's gRPC client sends the path of a socket as the authority of its calls, which Node's
// HTTP/2 server refuses.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/gogo/protobuf/proto"
	"google.golang.org/grpc"

	eviction "github.com/kubewharf/katalyst-api/pkg/protocol/evictionplugin/v1alpha1"
)

func main() {
	directory := flag.String("directory", "", "where the sockets are made")
	count := flag.Int("count", 0, "how many plugins are served")
	flag.Parse()
	if err := run(*directory, *count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(directory string, count int) error {
	received := &receiver{}
	for at := range count {
		listener, err := net.Listen("unix", filepath.Join(directory, fmt.Sprintf("plugin-%d.sock", at)))
		if err != nil {
			return err
		}
		server := grpc.NewServer(grpc.ForceServerCodec(received), grpc.MaxRecvMsgSize(math.MaxInt32))
		eviction.RegisterEvictionPluginServer(server, plugin{})
		go func() { _ = server.Serve(listener) }()
	}
	received.answer()
	for input := bufio.NewScanner(os.Stdin); input.Scan(); received.answer() {
		if input.Text() != "calls" {
			return fmt.Errorf("command %q is unknown", input.Text())
		}
	}
	return nil
}

// A codec that counts requests in place of decoding them.
type receiver struct {
	calls, bytes atomic.Int64
}

func (r *receiver) answer() {
	text, _ := json.Marshal(map[string]int64{"calls": r.calls.Swap(0), "bytes": r.bytes.Swap(0)})
	fmt.Println(string(text))
}

func (r *receiver) Name() string { return "proto" }

func (r *receiver) Marshal(message any) ([]byte, error) {
	return proto.Marshal(message.(proto.Message))
}

func (r *receiver) Unmarshal(request []byte, _ any) error {
	if len(request) > 0 {
		r.calls.Add(1)
		r.bytes.Add(int64(len(request)))
	}
	return nil
}

type plugin struct{}

func (plugin) GetToken(context.Context, *eviction.Empty) (*eviction.GetTokenResponse, error) {
	return &eviction.GetTokenResponse{}, nil
}

func (plugin) ThresholdMet(context.Context, *eviction.Empty) (*eviction.ThresholdMetResponse, error) {
	return &eviction.ThresholdMetResponse{MetType: eviction.ThresholdMetType_HARD_MET, EvictionScope: "memory"}, nil
}

func (plugin) GetTopEvictionPods(
	context.Context, *eviction.GetTopEvictionPodsRequest,
) (*eviction.GetTopEvictionPodsResponse, error) {
	return &eviction.GetTopEvictionPodsResponse{}, nil
}

func (plugin) GetEvictPods(context.Context, *eviction.GetEvictPodsRequest) (*eviction.GetEvictPodsResponse, error) {
	return &eviction.GetEvictPodsResponse{}, nil
}
