package main

import (
	"context"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

type config struct {
	// The file to append to.
	Path string `mapstructure:"path"`
}

var mutex sync.Mutex

// Each line is written at once, so that a kill leaves no more than one part of a line.
func (c *config) write(line []byte, err error) error {
	if err != nil {
		return err
	}
	mutex.Lock()
	defer mutex.Unlock()
	file, err := os.OpenFile(c.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}

func newFactory() exporter.Factory {
	return exporter.NewFactory(
		component.MustNewType("lines"),
		func() component.Config { return &config{} },
		exporter.WithLogs(
			func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
				return exporterhelper.NewLogs(ctx, set, cfg, func(_ context.Context, logs plog.Logs) error {
					return cfg.(*config).write((&plog.JSONMarshaler{}).MarshalLogs(logs))
				})
			},
			component.StabilityLevelDevelopment,
		),
		exporter.WithTraces(
			func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
				return exporterhelper.NewTraces(ctx, set, cfg, func(_ context.Context, traces ptrace.Traces) error {
					return cfg.(*config).write((&ptrace.JSONMarshaler{}).MarshalTraces(traces))
				})
			},
			component.StabilityLevelDevelopment,
		),
	)
}
