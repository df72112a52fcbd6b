package nodekeeper

import (
	"context"
	"testing"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

func TestValueIsReportedWhenItIsSet(t *testing.T) {
	statuses := NewValue[*devices.DeviceStatus]()
	statusOf := func(claim string) []*devices.DeviceStatus { return []*devices.DeviceStatus{{ClaimUid: claim}} }
	plugin := start(t, "d.example.com", func(ctx context.Context, options Options) error {
		return ServeDeviceDriver(ctx, options, DeviceDriver{
			Devices: fixed(poolOf("gpu-0")),
			Prepare: func(_ context.Context, request *devices.PrepareDevicesRequest) (*devices.PrepareDevicesResponse, error) {
				statuses.Set(statusOf(request.Claim.Uid))
				return &devices.PrepareDevicesResponse{}, nil
			},
			Unprepare: func(context.Context, *devices.UnprepareDevicesRequest) error { return nil },
			Status:    statuses.Report,
		})
	})
	statuses.Set(statusOf("overwritten"))
	statuses.Set(statusOf("first"))
	connection := plugin.connect()
	stream, err := devices.NewDeviceStatusReportClient(connection).WatchDeviceStatus(t.Context(), &devices.WatchDeviceStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	receive := func() string {
		response, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return response.Devices[0].ClaimUid
	}
	if claim := receive(); claim != "first" {
		t.Errorf("status of %q", claim)
	}
	if _, err := devices.NewDevicePreparationClient(connection).PrepareDevices(t.Context(), &devices.PrepareDevicesRequest{Claim: &devices.Claim{Uid: "second"}}); err != nil {
		t.Fatal(err)
	}
	if claim := receive(); claim != "second" {
		t.Errorf("status of %q", claim)
	}
}
