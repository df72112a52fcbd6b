module example.com/dra-example-driver

go 1.26.0

require (
	github.com/nodekeeper/nodekeeper/sdk-go v0.0.0
	k8s.io/apimachinery v0.36.3
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730
)

require (
	github.com/fxamacker/cbor/v2 v2.9.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/net v0.49.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	golang.org/x/text v0.33.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/grpc v1.79.3 // indirect
	google.golang.org/protobuf v1.36.12-0.20260120151049-f2248ac996af // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
)

// Until the module is published.
replace github.com/nodekeeper/nodekeeper/sdk-go => ../../sdk-go
