// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// EffectiveConfig returns a copy of the spec.config of the Subscription that installed a ClusterServiceVersion, or nil
// if the Subscription has none. This is the Subscription in the namespace whose status.installedCSV names the
// ClusterServiceVersion. If there is no such Subscription, EffectiveConfig compares status.currentCSV instead. If
// several Subscriptions match, EffectiveConfig uses the oldest one, and a Diagnostic names all of them. The result is
// nil if no Subscription matches. subs may contain Subscriptions of any namespace in any order. Nil entries are
// ignored.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/overrides, findOwnerSubscription. Differs: OLM uses
// the first match of an unordered list, and this library uses the oldest one. OLM compares only installedCSV, so it
// rolls out a new version first without and then with spec.config. This library also compares currentCSV.
func EffectiveConfig(
	subs []*v1alpha1.Subscription, namespace, csv string,
) (*v1alpha1.SubscriptionConfig, []olmcore.Diagnostic) {
	for _, version := range []func(s *v1alpha1.SubscriptionStatus) string{
		func(s *v1alpha1.SubscriptionStatus) string { return s.InstalledCSV },
		func(s *v1alpha1.SubscriptionStatus) string { return s.CurrentCSV },
	} {
		owners := slices.DeleteFunc(slices.Clone(subs), func(s *v1alpha1.Subscription) bool {
			return s == nil || s.Namespace != namespace || csv == "" || version(&s.Status) != csv
		})
		if len(owners) > 0 {
			return configOf(owners, csv)
		}
	}
	return nil, nil
}

// configOf returns the spec.config of the oldest of some Subscriptions that have installed a CSV.
func configOf(owners []*v1alpha1.Subscription, csv string) (*v1alpha1.SubscriptionConfig, []olmcore.Diagnostic) {
	oldest := slices.MinFunc(owners, func(a, b *v1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var diagnostics []olmcore.Diagnostic
	if len(owners) > 1 {
		diagnostics = append(diagnostics, olmcore.Diagnose(
			olmcore.Warning, ReasonSharedInstalledCSV, olmcore.RefOf(oldest), "status.installedCSV",
			"Subscriptions %s have installed CSV %s; spec.config of %s is used", relation.Names(owners), csv, oldest.Name))
	}
	if oldest.Spec == nil {
		return nil, diagnostics
	}
	return oldest.Spec.Config.DeepCopy(), diagnostics
}
