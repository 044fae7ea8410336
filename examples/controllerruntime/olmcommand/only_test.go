// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
	"slices"
	"strings"
	"sync"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/metrics"
)

// account is a ServiceAccount with the Rights of some controllers.
type account struct {
	rights controllers.Rights

	mu sync.Mutex
	// refused are the requests that were refused since the first watch.
	watches bool
	refused []string
	// all: nothing is refused any more.
	all bool
}

func (a *account) allowed(what authorizationv1.ResourceAttributes) bool {
	resource := what.Resource
	if what.Subresource != "" {
		resource += "/" + what.Subresource
	}
	return slices.ContainsFunc(a.rights.Cluster, func(r rbacv1.PolicyRule) bool {
		return (slices.Contains(r.APIGroups, what.Group) || slices.Contains(r.APIGroups, "*")) &&
			slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, what.Verb)
	})
}

func (a *account) authorize(what authorizationv1.ResourceAttributes) bool {
	is := a.allowed(what)
	a.mu.Lock()
	defer a.mu.Unlock()
	// The checks before that judge what they may read.
	a.watches = a.watches || what.Verb == "watch"
	if a.all {
		return true
	}
	if !is && a.watches {
		a.refused = append(a.refused, what.Verb+" "+what.Group+"/"+what.Resource)
	}
	return is
}

func (a *account) allowAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = true
}

func (a *account) wasRefused() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.refused)
}

// exposed is what the process exports, as "name" or "name label=value ...".
func exposed(t *testing.T) map[string]float64 {
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

// TestASelectionNeedsItsOwnRightsAlone: with --only of one controller, and an account that may do what Rights says of
// it, the program asks for nothing else, works, and exports what this controller reconciles and no other metric.
func TestASelectionNeedsItsOwnRightsAlone(t *testing.T) {
	options := controllers.Options{Sweeps: true, Operators: true}
	for _, c := range controllers.New(&options).Controllers {
		t.Run(c.Name, func(t *testing.T) {
			s := serve(t, append(apiserver.Definitions(),
				&v1alpha1.CatalogSource{ObjectMeta: named("catalog"), Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "127.0.0.1:1"}},
				&v1alpha1.Subscription{ObjectMeta: named("subscription"), Spec: &v1alpha1.SubscriptionSpec{Package: "p", CatalogSource: "catalog", CatalogSourceNamespace: "ops"}},
				&v1alpha1.InstallPlan{ObjectMeta: named("plan")}, &v1alpha1.ClusterServiceVersion{ObjectMeta: named("version.v1")},
				&operatorsv2.OperatorCondition{ObjectMeta: named("version.v1")},
				&operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "p.ops"}},
			)...)
			a := &account{rights: options.Rights(c.Name)}
			s.Allowed, s.Authorize = a.allowed, a.authorize
			reconciled := "controller_runtime_reconcile_total controller=olm-" + c.Name + " result="
			before := exposed(t)
			p := start(t, "--only", c.Name, "--zap-log-level", "error")
			t.Cleanup(a.allowAll) // a manager ends once its cache is filled
			var now map[string]float64
			p.until(func() (done bool) {
				require.Empty(t, a.wasRefused())
				now = exposed(t)
				for _, result := range []string{"success", "requeue_after", "requeue"} {
					done = done || now[reconciled+result] > before[reconciled+result]
				}
				exports := false
				for _, f := range metrics.Families() {
					exports = exports || f.Controller == c.Name && len(f.Labels) == 0 && len(f.Reads) > 0 && hasSeries(now, f.Name)
				}
				return done && (exports || !isAbout(c.Name))
			})
			p.stop()
			require.Empty(t, a.wasRefused())
			for _, f := range metrics.Families() {
				if f.Controller != "" && f.Controller != c.Name {
					require.False(t, hasSeries(now, f.Name), f.Name)
				}
			}
			for name, value := range now {
				if strings.HasPrefix(name, "olm_kind_readable ") {
					require.EqualValues(t, 1, value, name)
				}
			}
		})
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ops", Name: name} }

// isAbout reports whether there are metrics of what a controller reconciles.
func isAbout(controller string) bool {
	return slices.ContainsFunc(metrics.Families(), func(f metrics.Family) bool { return f.Controller == controller })
}

func hasSeries(all map[string]float64, metric string) bool {
	for name := range all {
		if name == metric || strings.HasPrefix(name, metric+" ") {
			return true
		}
	}
	return false
}
