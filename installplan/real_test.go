// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// monitoring are the CustomResourceDefinitions that published bundles take for
// granted.
func monitoring() []olmcore.Object {
	var out []olmcore.Object
	for kind, plural := range map[string]string{"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"} {
		crd := crdObject("v1")
		crd.Name = plural + ".monitoring.coreos.com"
		crd.Spec.Group = "monitoring.coreos.com"
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, ListKind: kind + "List", Singular: kind}
		out = append(out, crd)
	}
	return out
}

// TestPublishedBundlesAreInstalled: the plan of each runs to Complete, what it
// describes is there, and from then on nothing is asked for.
func TestPublishedBundlesAreInstalled(t *testing.T) {
	t.Parallel()
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			o := publishedOperator(b)
			c := world(t, append(monitoring(), &v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sub"}, Spec: &v1alpha1.SubscriptionSpec{Package: b.Operator},
			})...)
			config := installplan.Config{MaxStatusBytes: 4 << 20}
			d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), config), plans(config)}}
			require.NoError(t, d.Settle(t.Context()))
			all, err := olmcore.List[*v1alpha1.InstallPlan](t.Context(), c, ns, nil)
			require.NoError(t, err)
			require.Len(t, all, 1)
			p := all[0]
			require.Equal(t, v1alpha1.InstallPlanPhaseComplete, p.Status.Phase, p.Status.Message)
			require.Empty(t, p.Finalizers)
			sub, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), c, ns, "sub")
			require.NoError(t, err)
			require.True(t, olmcore.OwnedBy(p, sub.UID))
			for _, s := range p.Status.Plan {
				require.Contains(t, []v1alpha1.StepStatus{v1alpha1.StepStatusCreated, v1alpha1.StepStatusPresent}, s.Status, s.Resource.Name)
			}
			before := c.ResourceVersion()
			require.NoError(t, d.Settle(t.Context()))
			require.Equal(t, before, c.ResourceVersion(), "it is done")
		})
	}
}
