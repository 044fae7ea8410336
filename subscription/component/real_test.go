// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestPublishedOperatorsGetTheirLabel installs published operators. It checks that the Subscriptions are at the
// latest known version, and that the CSV and its CRDs get their label and keep the others.
func TestPublishedOperatorsGetTheirLabel(t *testing.T) {
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			in := inputOf()
			owned := map[string]bool{}
			for _, o := range b.Objects {
				o = o.DeepCopyObject().(olmcore.Object)
				o.SetUID("uid-" + o.GetUID() + "1")
				o.SetResourceVersion("1")
				switch o := o.(type) {
				case *v1alpha1.ClusterServiceVersion:
					o.Namespace = ns
					in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, o)
					for _, d := range o.Spec.CustomResourceDefinitions.Owned {
						owned[d.Name] = true
					}
				case *apiextensionsv1.CustomResourceDefinition:
					in.Components = append(in.Components, o)
				}
			}
			require.Len(t, in.ClusterServiceVersions.Items, 1)
			csv := in.ClusterServiceVersions.Items[0]
			for _, o := range in.Components { // as the plan notes it
				annotations, _ := olmcore.MergeMaps(
					o.GetAnnotations(),
					map[string]string{"operatorframework.io/installed-alongside-1": ns + "/" + csv.Name},
				)
				o.SetAnnotations(annotations)
			}
			in.Subscriptions.Items = []*v1alpha1.Subscription{newSub("a", func(s *v1alpha1.Subscription) {
				s.Spec.Package, s.Labels, s.Status.CurrentCSV = b.Operator, nil, csv.Name
			})}
			require.NoError(t, invariant.Laws(result, in))

			out := reconcile(t, in)
			require.Equal(t, v1alpha1.SubscriptionState("AtLatestKnown"), statusOf(t, in, out, "a").State)
			carryOut(&in, out)
			out = reconcile(t, in)
			carryOut(&in, out)
			key, err := olmcore.ComponentLabelKey(b.Operator, ns)
			require.NoError(t, err)
			require.Contains(t, in.Subscriptions.Items[0].Labels, key)
			require.Contains(t, in.ClusterServiceVersions.Items[0].Labels, key)
			for label := range csv.Labels {
				require.Contains(t, in.ClusterServiceVersions.Items[0].Labels, label)
			}
			labelled := labelsAfter(reconcile(t, in))
			for _, o := range in.Components {
				if owned[o.GetName()] {
					require.Contains(t, labelled["CustomResourceDefinition/"+o.GetName()], key)
				}
			}
		})
	}
}

// result is Reconcile as the laws know it.
func result(in subscription.Input) (olmcore.Result, error) {
	out, err := subscription.Reconcile(in)
	return out.Result, err
}
