// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestTheProgramIsReadyOnceItsCachesAreFilled, whether it works or waits for another to end, and alive before.
func TestTheProgramIsReadyOnceItsCachesAreFilled(t *testing.T) {
	lease := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-" + olmcore.NameSuffix(10)}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()}}
	for name, tt := range map[string]struct {
		args  []string
		works bool
	}{
		"alone":   {works: true},
		"waiting": {args: []string{"--leader-elect"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, append(apiserver.Definitions(), lease)...)
			var readable atomic.Bool
			s.Authorize = func(what authorizationv1.ResourceAttributes) bool {
				return what.Resource != "secrets" || readable.Load()
			}
			p := probed(t, tt.args...)
			t.Cleanup(func() { readable.Store(true) }) // a manager whose caches are not filled does not end
			p.answers("/readyz/caches", http.StatusInternalServerError, "internal server error: the caches lack Secret")
			p.answers("/healthz", http.StatusOK, "ok")
			p.answers("/readyz", http.StatusInternalServerError, "[-]caches failed: reason withheld\nhealthz check failed")
			readable.Store(true)
			p.answers("/readyz", http.StatusOK, "ok")
			if tt.works {
				eventually(t, func() string { return fmt.Sprint(done(t, s)) }, func(have string) bool { return have == "true" })
			}
			require.Equal(t, tt.works, done(t, s))
		})
	}
}

// done reports whether the OperatorGroup was taken care of.
func done(t *testing.T, s *apiserver.Server) (done bool) {
	require.NoError(t, s.With(func(c *fake.Cluster) error {
		done = !fake.Find[*operatorsv1.OperatorGroup](c, "ops", "group").Status.LastUpdated.IsZero()
		return nil
	}))
	return done
}

// probes are those of a program that runs until the test ends.
type probes struct {
	*testing.T
	address string
}

func probed(t *testing.T, args ...string) probes {
	p := probes{t, free(t)}
	args = append(args, "--health-probe-bind-address", p.address, "--zap-log-level", "panic")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, args, io.Discard) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return p
}

// answers waits for an answer.
func (p probes) answers(path string, code int, text string) {
	p.Helper()
	status := 0
	eventually(p.T, func() string {
		response, err := http.Get("http://" + p.address + path)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(p, err)
		status = response.StatusCode
		return strings.TrimSpace(string(body))
	}, func(have string) bool { return status == code && have == text })
}

// eventually waits for what is looked at; how long, matters on a busy machine only.
func eventually(t *testing.T, look func() string, wanted func(have string) bool) {
	t.Helper()
	have := look()
	for deadline := time.Now().Add(5 * time.Second); !wanted(have) && time.Now().Before(deadline); have = look() {
		time.Sleep(10 * time.Millisecond)
	}
	require.True(t, wanted(have), have)
}
