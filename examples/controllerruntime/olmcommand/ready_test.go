// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
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
	for name, waits := range map[string]bool{"alone": false, "waiting": true} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, append(apiserver.Definitions(), lease)...)
			var readable atomic.Bool
			var elections atomic.Int32
			s.Authorize = func(what authorizationv1.ResourceAttributes) bool {
				if what.Resource == "leases" && what.Name == lease.Name {
					elections.Add(1)
				}
				return what.Resource != "secrets" || readable.Load()
			}
			p := probed(t, fmt.Sprintf("--leader-elect=%t", waits))
			t.Cleanup(func() { readable.Store(true) }) // a manager whose caches are not filled does not end
			p.answers("/readyz/caches", http.StatusInternalServerError, "internal server error: the caches lack Secret")
			p.answers("/healthz", http.StatusOK, "ok")
			p.answers("/readyz", http.StatusInternalServerError, "[-]caches failed: reason withheld\nhealthz check failed")
			readable.Store(true)
			p.answers("/readyz", http.StatusOK, "ok")
			if waits {
				seen := elections.Load() // it asks again after seconds; a program that does not wait is done by then
				p.until(func() bool { return elections.Load() > seen+1 })
				require.False(t, done(t, s))
				return
			}
			p.until(func() bool { return done(t, s) })
			require.Zero(t, elections.Load())
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

// probes are those of a program.
type probes struct {
	*program
	address string
}

func probed(t *testing.T, args ...string) probes {
	address := free(t)
	return probes{start(t, append(args, "--health-probe-bind-address", address, "--zap-log-level", "panic")...), address}
}

// answers waits for an answer.
func (p probes) answers(path string, code int, text string) {
	p.Helper()
	have := ""
	p.until(func() bool {
		response, err := http.Get("http://" + p.address + path)
		if err != nil {
			have = err.Error()
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(p, err)
		have = strings.TrimSpace(string(body))
		return response.StatusCode == code && have == text
	}, func() string { return have })
}
