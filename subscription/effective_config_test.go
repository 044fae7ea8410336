// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/subscription"
)

func TestEffectiveConfigOfOneSubscription(t *testing.T) {
	with := func(name string, age int, current, installedCSV string) *v1alpha1.Subscription {
		s := newSub(name)
		s.CreationTimestamp = second(age)
		s.Spec.Config = &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"of": name}}
		s.Status.CurrentCSV, s.Status.InstalledCSV = current, installedCSV
		return s
	}
	bare := with("bare", 0, "x", "x")
	bare.Spec.Config = nil
	foreign := with("foreign", 0, "v1", "v1")
	foreign.Namespace = "elsewhere"
	for name, tc := range map[string]struct {
		subs   []*v1alpha1.Subscription
		csv    string
		want   string
		shared string
	}{
		"no Subscription": {nil, "v1", "", ""},
		"a Subscription of another namespace is ignored":     {[]*v1alpha1.Subscription{foreign, nil}, "v1", "", ""},
		"the Subscription that installed the CSV":            {[]*v1alpha1.Subscription{with("a", 0, "v1", ""), with("b", 5, "v2", "v1")}, "v1", "b", ""},
		"the Subscription that will install the CSV":         {[]*v1alpha1.Subscription{with("a", 0, "v1", "v0"), with("b", 5, "v2", "v2")}, "v1", "a", ""},
		"the older of two Subscriptions":                     {[]*v1alpha1.Subscription{with("a", 5, "v1", "v1"), with("b", 4, "v1", "v1")}, "v1", "b", "Subscriptions a, b have installed CSV v1; spec.config of b is used"},
		"the first by name of two equally old Subscriptions": {[]*v1alpha1.Subscription{with("b", 4, "v1", "v1"), with("a", 4, "v1", "v1")}, "v1", "a", "Subscriptions a, b have installed CSV v1; spec.config of a is used"},
		"without a config":                                   {[]*v1alpha1.Subscription{bare}, "x", "", ""},
		"without a spec":                                     {[]*v1alpha1.Subscription{newSub("a", func(s *v1alpha1.Subscription) { s.Spec, s.Status.InstalledCSV = nil, "v1" })}, "v1", "", ""},
		"without a name":                                     {[]*v1alpha1.Subscription{with("a", 0, "", "")}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, diagnostics := subscription.EffectiveConfig(tc.subs, ns, tc.csv)
			require.Equal(t, tc.want == "", config == nil)
			if config != nil {
				require.Equal(t, tc.want, config.NodeSelector["of"])
				config.NodeSelector["of"] = "changed"
				again, _ := subscription.EffectiveConfig(tc.subs, ns, tc.csv)
				require.Equal(t, tc.want, again.NodeSelector["of"], "a copy")
			}
			require.Equal(t, tc.shared != "", len(diagnostics) == 1)
			if tc.shared != "" {
				require.Equal(t, tc.shared, diagnostics[0].Message)
			}
		})
	}
}
