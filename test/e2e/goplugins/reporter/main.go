// Command reporter is a reporter plugin on katalyst-api's plugin skeleton. It reports what a file says, again each
// time the file changes, so that a test can steer it. SIGTERM ends it as the skeleton does: the socket is removed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubewharf/katalyst-api/pkg/plugins/skeleton"
	"github.com/kubewharf/katalyst-api/pkg/protocol/reporterplugin/v1alpha1"
)

const pollInterval = 50 * time.Millisecond

// report is what the file holds: quantities for status.resources of the CustomNodeResource, labels for the Node.
type report struct {
	Resources json.RawMessage `json:"resources"`
	Labels    json.RawMessage `json:"labels"`
}

type reporter struct {
	v1alpha1.UnimplementedReporterPluginServer
	name string
	file string

	mutex sync.Mutex
	stop  chan struct{}
}

func (r *reporter) Name() string { return r.name }

func (r *reporter) Start() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.stop = make(chan struct{})
	return nil
}

// Stop may be called before Start and again and again, as the skeleton does.
func (r *reporter) Stop() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stop != nil {
		close(r.stop)
		r.stop = nil
	}
	return nil
}

func (r *reporter) GetReportContent(context.Context, *v1alpha1.Empty) (*v1alpha1.GetReportContentResponse, error) {
	response, _, err := r.read()
	return response, err
}

func (r *reporter) ListAndWatchReportContent(_ *v1alpha1.Empty, stream v1alpha1.ReporterPlugin_ListAndWatchReportContentServer) error {
	r.mutex.Lock()
	stop := r.stop
	r.mutex.Unlock()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := ""
	for {
		response, text, err := r.read()
		if err != nil {
			return err
		}
		if text != last {
			if err := stream.Send(response); err != nil {
				return err
			}
			last = text
		}
		select {
		case <-stop:
			return nil
		case <-stream.Context().Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (r *reporter) read() (*v1alpha1.GetReportContentResponse, string, error) {
	text, err := os.ReadFile(r.file)
	if err != nil {
		return nil, "", err
	}
	var said report
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, "", err
	}
	return &v1alpha1.GetReportContentResponse{Content: []*v1alpha1.ReportContent{
		{
			GroupVersionKind: &metav1.GroupVersionKind{Group: "node.katalyst.kubewharf.io", Version: "v1alpha1", Kind: "CustomNodeResource"},
			// Go's name of the field: the agent has to find the JSON name.
			Field: []*v1alpha1.ReportField{{FieldType: v1alpha1.FieldType_Status, FieldName: "Resources", Value: said.Resources}},
		},
		{
			GroupVersionKind: &metav1.GroupVersionKind{Version: "v1", Kind: "Node"},
			Field:            []*v1alpha1.ReportField{{FieldType: v1alpha1.FieldType_Metadata, FieldName: "Labels", Value: said.Labels}},
		},
	}}, string(text), nil
}

func main() {
	name := flag.String("name", "go-reporter", "the plugin's name")
	directory := flag.String("directory", "", "the directory that the agent watches")
	file := flag.String("file", "", "what to report")
	flag.Parse()

	plugin, err := skeleton.NewRegistrationPluginWrapper(&reporter{name: *name, file: *file}, []string{*directory}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		log.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	if err := plugin.Stop(); err != nil {
		log.Fatal(err)
	}
}
