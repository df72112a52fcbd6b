// Command reporter is a sample reporter plugin on katalyst-api's plugin skeleton: it reports simulated widgets of this
// node, and changes how many can be used.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubewharf/katalyst-api/pkg/plugins/skeleton"
	"github.com/kubewharf/katalyst-api/pkg/protocol/reporterplugin/v1alpha1"
)

const (
	widgets = "example.nodekeeper.dev/widgets"
	total   = 16
)

var (
	socketDir = flag.String("socket-dir", "/var/lib/nodekeeper/plugins_registry", "the directory that the agent watches")
	name      = flag.String("name", "example-reporter", "the plugin's name")
	interval  = flag.Duration("interval", time.Second, "how often the number of usable widgets changes")
	startedAt = time.Now()
)

type reporter struct {
	v1alpha1.UnimplementedReporterPluginServer
}

func (*reporter) Name() string { return *name }
func (*reporter) Start() error { return nil }
func (*reporter) Stop() error  { return nil }

func (*reporter) GetReportContent(context.Context, *v1alpha1.Empty) (*v1alpha1.GetReportContentResponse, error) {
	return content()
}

// ListAndWatchReportContent sends everything that the plugin reports, again after each change.
func (*reporter) ListAndWatchReportContent(_ *v1alpha1.Empty, stream v1alpha1.ReporterPlugin_ListAndWatchReportContentServer) error {
	for {
		response, err := content()
		if err != nil {
			return err
		}
		if err := stream.Send(response); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(*interval):
		}
	}
}

func content() (*v1alpha1.GetReportContentResponse, error) {
	usable := total - int(time.Since(startedAt) / *interval)%5
	resources, err := json.Marshal(map[string]map[string]string{
		"capacity":    {widgets: strconv.Itoa(total)},
		"allocatable": {widgets: strconv.Itoa(usable)},
	})
	if err != nil {
		return nil, err
	}
	return &v1alpha1.GetReportContentResponse{Content: []*v1alpha1.ReportContent{
		{
			GroupVersionKind: &metav1.GroupVersionKind{Group: "node.katalyst.kubewharf.io", Version: "v1alpha1", Kind: "CustomNodeResource"},
			Field:            []*v1alpha1.ReportField{{FieldType: v1alpha1.FieldType_Status, FieldName: "resources", Value: resources}},
		},
		{
			GroupVersionKind: &metav1.GroupVersionKind{Version: "v1", Kind: "Node"},
			Field: []*v1alpha1.ReportField{
				{FieldType: v1alpha1.FieldType_Metadata, FieldName: "labels", Value: []byte(`{"example.nodekeeper.dev/has-widgets": "true"}`)},
			},
		},
	}}, nil
}

func main() {
	flag.Parse()
	plugin, err := skeleton.NewRegistrationPluginWrapper(&reporter{}, []string{*socketDir}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		log.Fatal(err)
	}
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	<-ctx.Done()
	if err := plugin.Stop(); err != nil {
		log.Fatal(err)
	}
}
