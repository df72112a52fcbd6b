package nodekeeper

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc"

	reporter "github.com/nodekeeper/nodekeeper/sdk-go/gen/reporterplugin/v1alpha1"
)

// ServeReporterPlugin serves a reporter plugin until the context ends. The agent publishes what it reports in the node's
// objects; a field that the newest value omits is removed.
func ServeReporterPlugin(ctx context.Context, options Options, report Report[*reporter.ReportContent]) error {
	k := kind{pluginType: "ReporterPlugin", versions: []string{"v1alpha1"}}
	contents := follow(&k, report, "content")
	k.addServices = func(ctx context.Context, server *grpc.Server) {
		reporter.RegisterReporterPluginServer(server, reporterService{contents: contents, plugin: ctx})
	}
	return serve(ctx, options, k)
}

// CustomNodeResource returns fields of this node's CustomNodeResource.
func CustomNodeResource(fields ...*reporter.ReportField) *reporter.ReportContent {
	kind := &reporter.GroupVersionKind{Group: "node.katalyst.kubewharf.io", Version: "v1alpha1", Kind: "CustomNodeResource"}
	return &reporter.ReportContent{GroupVersionKind: kind, Field: fields}
}

// Node returns fields of this node's Node object: labels and annotations.
func Node(fields ...*reporter.ReportField) *reporter.ReportContent {
	kind := &reporter.GroupVersionKind{Version: "v1", Kind: "Node"}
	return &reporter.ReportContent{GroupVersionKind: kind, Field: fields}
}

// Spec returns a field of the object's spec, by its JSON name. It panics if the value can't be written as JSON.
func Spec(name string, value any) *reporter.ReportField {
	return field(reporter.FieldType_Spec, name, value)
}

// Status returns a field of the object's status; see Spec.
func Status(name string, value any) *reporter.ReportField {
	return field(reporter.FieldType_Status, name, value)
}

// Metadata returns the object's "labels" or "annotations".
func Metadata(name string, value map[string]string) *reporter.ReportField {
	return field(reporter.FieldType_Metadata, name, value)
}

func field(part reporter.FieldType, name string, value any) *reporter.ReportField {
	text, err := json.Marshal(value)
	if err != nil {
		panic("field " + name + ": " + err.Error())
	}
	return &reporter.ReportField{FieldType: part, FieldName: name, Value: text}
}

type reporterService struct {
	reporter.UnimplementedReporterPluginServer
	contents *latest[[]*reporter.ReportContent]
	plugin   context.Context
}

func (s reporterService) GetReportContent(call context.Context, _ *reporter.Empty) (*reporter.GetReportContentResponse, error) {
	if _, err := s.contents.failed(); err != nil {
		return nil, err
	}
	ctx, release := either(call, s.plugin)
	defer release()
	contents, _, err := s.contents.after(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &reporter.GetReportContentResponse{Content: contents}, nil
}

func (s reporterService) ListAndWatchReportContent(_ *reporter.Empty, call grpc.ServerStreamingServer[reporter.GetReportContentResponse]) error {
	return stream(s.contents, s.plugin, call, func(contents []*reporter.ReportContent) *reporter.GetReportContentResponse {
		return &reporter.GetReportContentResponse{Content: contents}
	})
}
