package nodekeeper

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	eviction "github.com/nodekeeper/nodekeeper/sdk-go/gen/evictionplugin/v1alpha1"
	core "github.com/nodekeeper/nodekeeper/sdk-go/gen/k8s/core/v1"
	rounds "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/eviction/v1alpha1"
)

// Enough for a few thousand pods of typical size.
const maxOfferBytes = 64 * 1024 * 1024

// EvictionPlugin has the functions of an eviction plugin; one that is nil, or returns nil, requests nothing. Pods are decoded as far as the
// agent's proto files describe them.
type EvictionPlugin struct {
	// ThresholdMet is called once per round.
	ThresholdMet func(ctx context.Context, pods []*core.Pod) (*eviction.ThresholdMetResponse, error)
	// TopPods is called when the threshold has been met for its grace period. It returns the pods to evict for it, in the
	// order of eviction. topN is the largest number of them; 0: no limit.
	TopPods func(ctx context.Context, pods []*core.Pod, topN int, scope string) ([]*core.Pod, error)
	// EvictPods is called once per round, and returns pods to evict regardless of thresholds.
	EvictPods func(ctx context.Context, pods []*core.Pod) (*eviction.GetEvictPodsResponse, error)
	// Token returns the token of the plugin's service account, for agents that require one. Tokens expire, so it is called
	// again at each registration.
	Token func(ctx context.Context) (string, error)
	// RoundRequests has the reasons for which the plugin requests an eviction round before the end of the period, because a
	// threshold was crossed. The agent starts at most one such round per second.
	RoundRequests <-chan string
}

// ServeEvictionPlugin serves an eviction plugin until the context ends. In each round the agent asks it, decides, and
// evicts. The plugin needs no access to the API server.
func ServeEvictionPlugin(ctx context.Context, options Options, plugin EvictionPlugin) error {
	k := kind{pluginType: "EvictionPlugin", versions: []string{"v1alpha1"}, maxRequestBytes: maxOfferBytes}
	k.addServices = func(ctx context.Context, server *grpc.Server) {
		eviction.RegisterEvictionPluginServer(server, evictionService{plugin: plugin})
		if plugin.RoundRequests != nil {
			rounds.RegisterRoundRequestsServer(server, roundRequestService{requests: plugin.RoundRequests, plugin: ctx})
		}
	}
	return serve(ctx, options, k)
}

// newest returns the last of the pending requests: one round serves all.
func newest(requests <-chan string, reason string) string {
	for {
		select {
		case next, isOpen := <-requests:
			if !isOpen {
				return reason
			}
			reason = next
		default:
			return reason
		}
	}
}

// What is not implemented is answered with UNIMPLEMENTED: there is nothing to report.
type evictionService struct {
	eviction.UnimplementedEvictionPluginServer
	plugin EvictionPlugin
}

func (s evictionService) ThresholdMet(ctx context.Context, request *eviction.GetThresholdMetRequest) (*eviction.ThresholdMetResponse, error) {
	if s.plugin.ThresholdMet == nil {
		return s.UnimplementedEvictionPluginServer.ThresholdMet(ctx, request)
	}
	pods, err := decodePods(request.ActivePods)
	if err != nil {
		return nil, callError(err)
	}
	return answer(s.plugin.ThresholdMet(ctx, pods))
}

// answer returns the answer of an author's function. Nil is an empty one.
func answer[T any](response *T, err error) (*T, error) {
	if err != nil {
		return nil, reportError(err)
	}
	if response == nil {
		response = new(T)
	}
	return response, nil
}

func (s evictionService) GetToken(ctx context.Context, request *eviction.Empty) (*eviction.GetTokenResponse, error) {
	if s.plugin.Token == nil {
		return s.UnimplementedEvictionPluginServer.GetToken(ctx, request)
	}
	token, err := s.plugin.Token(ctx)
	if err != nil {
		return nil, reportError(err)
	}
	return &eviction.GetTokenResponse{Token: token}, nil
}

func (s evictionService) GetTopEvictionPods(ctx context.Context, request *eviction.GetTopEvictionPodsRequest) (*eviction.GetTopEvictionPodsResponse, error) {
	if s.plugin.TopPods == nil {
		return s.UnimplementedEvictionPluginServer.GetTopEvictionPods(ctx, request)
	}
	pods, err := decodePods(request.ActivePods)
	if err != nil {
		return nil, callError(err)
	}
	top, err := s.plugin.TopPods(ctx, pods, int(request.TopN), request.EvictionScope)
	if err != nil {
		return nil, reportError(err)
	}
	if request.TopN > 0 && uint64(len(top)) > request.TopN {
		top = top[:request.TopN]
	}
	encoded, err := encodePods(top)
	if err != nil {
		return nil, reportError(err)
	}
	return &eviction.GetTopEvictionPodsResponse{TargetPods: encoded}, nil
}

func (s evictionService) GetEvictPods(ctx context.Context, request *eviction.GetEvictPodsRequest) (*eviction.GetEvictPodsResponse, error) {
	if s.plugin.EvictPods == nil {
		return s.UnimplementedEvictionPluginServer.GetEvictPods(ctx, request)
	}
	pods, err := decodePods(request.ActivePods)
	if err != nil {
		return nil, callError(err)
	}
	return answer(s.plugin.EvictPods(ctx, pods))
}

func decodePods(encoded [][]byte) ([]*core.Pod, error) {
	pods := make([]*core.Pod, len(encoded))
	for index, bytes := range encoded {
		pods[index] = &core.Pod{}
		if err := proto.Unmarshal(bytes, pods[index]); err != nil {
			return nil, fmt.Errorf("pod %d of the request can't be decoded: %w", index, err)
		}
	}
	return pods, nil
}

func encodePods(pods []*core.Pod) ([][]byte, error) {
	encoded := make([][]byte, len(pods))
	for index, pod := range pods {
		bytes, err := proto.Marshal(pod)
		if err != nil {
			return nil, err
		}
		encoded[index] = bytes
	}
	return encoded, nil
}

type roundRequestService struct {
	rounds.UnimplementedRoundRequestsServer
	requests <-chan string
	plugin   context.Context
}

func (s roundRequestService) WaitForRequest(call context.Context, _ *rounds.WaitForRequestRequest) (*rounds.RoundRequest, error) {
	ctx, release := either(call, s.plugin)
	defer release()
	requests := s.requests
	for {
		select {
		case reason, isOpen := <-requests:
			if !isOpen {
				// The plugin requests no more rounds.
				requests = nil
				continue
			}
			return &rounds.RoundRequest{Reason: newest(requests, reason)}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
