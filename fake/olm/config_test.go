// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestTheConfigOfAVersionIsThatOfOneSubscription: whichever Subscriptions claim a
// version, its Deployment has the config that subscription.EffectiveConfig says.
func TestTheConfigOfAVersionIsThatOfOneSubscription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		w.run(t, time.Minute)
		w.requireInstalled(t, "alpha")
		w.olm.Resolve, w.olm.Subscription.SkipComponents = nil, true
		head := csvName("alpha", 1)
		for _, name := range []string{"alpha", "aaa", "zzz", "bbb"} {
			if name != "alpha" {
				if !rapid.Bool().Draw(t, "there is "+name) {
					continue
				}
				require.NoError(t, w.cluster.Create(&v1alpha1.Subscription{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
					Spec:       &v1alpha1.SubscriptionSpec{Package: name, CatalogSource: "community", CatalogSourceNamespace: "olm"},
				}))
			}
			has, waits := rapid.Bool().Draw(t, name+" has it"), rapid.Bool().Draw(t, name+" waits for it")
			configured := rapid.Bool().Draw(t, name+" is configured")
			require.NoError(t, fake.Edit(w.cluster, namespace, name, func(s *v1alpha1.Subscription) {
				s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.LastUpdated = "", "", metav1.NewTime(w.cluster.Now())
				if has {
					s.Status.InstalledCSV = head
				}
				if waits {
					s.Status.CurrentCSV = head
				}
				if configured {
					s.Spec.Config = &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"kubernetes.io/hostname": "a", "of": name}}
				}
			}))
			w.cluster.Advance(time.Duration(rapid.IntRange(0, 1).Draw(t, "seconds")) * time.Second)
		}
		require.NoError(t, w.driver.RunFor(t.Context(), time.Minute))
		subs, err := olmcore.List[*v1alpha1.Subscription](context.Background(), w.cluster, namespace, nil)
		require.NoError(t, err)
		config, _ := subscription.EffectiveConfig(subs, namespace, head)
		want := ""
		if config != nil {
			want = config.NodeSelector["of"]
		}
		d := fake.Find[*appsv1.Deployment](w.cluster, namespace, "alpha")
		require.NotNil(t, d)
		require.Equal(t, want, d.Spec.Template.Spec.NodeSelector["of"])
	})
}
