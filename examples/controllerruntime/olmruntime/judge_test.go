// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestAManagerJudgesCustomResources unless it is told not to, by lists of the API server: none is cached.
func TestAManagerJudgesCustomResources(t *testing.T) {
	refuses := func(context.Context, olmcore.Reader, []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
		return []installplan.ResourceVerdict{{CustomResourceDefinition: "crons.example.com", Version: "v1", ReadError: "by mine"}}, nil
	}
	for name, c := range map[string]struct {
		options  olmruntime.Options
		replicas int
		refused  string // empty: the plan completes
		lists    bool
	}{
		"a resource that breaks":     {olmruntime.Options{}, 10, `Cron "ops/one": updated validation is too restrictive: [].spec.replicas: Invalid value: 10`, true},
		"a resource that fits":       {olmruntime.Options{}, 9, "", true},
		"one that is not judged":     {olmruntime.Options{SkipJudge: true}, 10, "", false},
		"a judge of the user's own":  {olmruntime.Options{Options: controllers.Options{Judge: refuses}}, 9, "by mine", false},
		"which is not to be skipped": {olmruntime.Options{Options: controllers.Options{Judge: refuses}, SkipJudge: true}, 9, "by mine", false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewCluster(time.Now())
			objects, err := apiserver.StricterSchema(map[string]int{"one": c.replicas})
			require.NoError(t, err)
			require.NoError(t, cluster.Load(objects...))
			s, config := serve(t, cluster)
			verbs := map[string]bool{}
			s.Authorize = func(what authorizationv1.ResourceAttributes) bool {
				if what.Resource == "crons" {
					verbs[what.Verb] = true // it is asked while the server is locked
				}
				return true
			}
			mgr, err := olmruntime.New(config, ctrl.Options{
				Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(5 * time.Second), Logger: logr.Discard(),
			}, c.options, controllers.InstallPlan)
			require.NoError(t, err)
			defer run(t, mgr)()
			until(t, s, "the plan is judged", func(cluster *fake.Cluster) bool {
				status := fake.Find[*v1alpha1.InstallPlan](cluster, "ops", "stricter").Status
				return c.refused == "" && status.Phase == v1alpha1.InstallPlanPhaseComplete ||
					c.refused != "" && strings.Contains(status.Message, c.refused)
			})
			want := map[string]bool{}
			if c.lists {
				want["list"] = true
			}
			do(t, s, func(*fake.Cluster) error { require.Equal(t, want, verbs); return nil })
		})
	}
}
