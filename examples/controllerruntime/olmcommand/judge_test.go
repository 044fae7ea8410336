// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
)

// TestThePlanSaysWhichRightIsMissing when the account of the program may not list what is to be judged, and goes on as
// soon as it may. With --judge=false it needs no such right.
func TestThePlanSaysWhichRightIsMissing(t *testing.T) {
	const remedy = "error listing crons.example.com of version v1: crons.example.com is forbidden: no rule allows it; " +
		"bind the account that judges to a ClusterRole with the rule {apiGroups: [example.com], resources: [crons], verbs: [list]}, " +
		"or judge no custom resources (--judge=false)"
	for name, args := range map[string][]string{"by default": nil, "nothing is judged": {"--judge=false"}} {
		t.Run(name, func(t *testing.T) {
			objects, err := apiserver.StricterSchema(map[string]int{"fits": 9})
			require.NoError(t, err)
			s := serve(t, apiserver.Definitions()...)
			require.NoError(t, s.With(func(c *fake.Cluster) error { return c.Load(objects...) }))
			var allowed atomic.Bool
			s.Authorize = func(what authorizationv1.ResourceAttributes) bool { return what.Resource != "crons" || allowed.Load() }
			p := start(t, append([]string{"--only", "installplan", "--zap-log-level", "error"}, args...)...)
			until := func(is func(status v1alpha1.InstallPlanStatus) bool) {
				var status v1alpha1.InstallPlanStatus
				p.until(func() bool {
					require.NoError(t, s.With(func(c *fake.Cluster) error {
						status = fake.Find[*v1alpha1.InstallPlan](c, "ops", "stricter").Status
						return nil
					}))
					return is(status)
				}, func() string { return fmt.Sprint(status) })
			}
			if args == nil {
				until(func(status v1alpha1.InstallPlanStatus) bool { return strings.Contains(status.Message, remedy) })
				allowed.Store(true)
			}
			until(func(status v1alpha1.InstallPlanStatus) bool { return status.Phase == v1alpha1.InstallPlanPhaseComplete })
			p.stop()
		})
	}
}
