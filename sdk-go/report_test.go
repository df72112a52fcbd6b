package nodekeeper

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestErrorsOfCallsAreTruncatedAndKeepTheirStatus(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	for name, err := range map[string]error{"error": errors.New(long), "status": status.Error(codes.FailedPrecondition, long)} {
		failure := status.Convert(callError(err))
		if failure.Message() != strings.Repeat("é", 500) {
			t.Errorf("%s: %d bytes", name, len(failure.Message()))
		}
		if name == "status" && failure.Code() != codes.FailedPrecondition {
			t.Errorf("code %s", failure.Code())
		}
	}
	if callError(nil) != nil {
		t.Error("no error became one")
	}
}
