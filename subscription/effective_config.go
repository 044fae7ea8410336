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

// EffectiveConfig returns spec.config of the Subscription that a ClusterServiceVersion belongs to, as a copy: the one of
// its namespace whose status.installedCSV names it, else whose status.currentCSV does; of several the oldest, then the
// first by name, and a Diagnostic names them. It is nil when there is no such Subscription or that one has none. subs may
// hold Subscriptions of any namespace, in any order; nil entries are ignored. Package csv goes by the same rule.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/overrides, findOwnerSubscription. Differs: OLM takes the
// first of an unordered list, and only by installedCSV, so that a new version is rolled out twice.
func EffectiveConfig(subs []*v1alpha1.Subscription, namespace, csv string) (*v1alpha1.SubscriptionConfig, []olmcore.Diagnostic) {
	for _, version := range []func(s *v1alpha1.SubscriptionStatus) string{
		func(s *v1alpha1.SubscriptionStatus) string { return s.InstalledCSV },
		func(s *v1alpha1.SubscriptionStatus) string { return s.CurrentCSV },
	} {
		owners := slices.DeleteFunc(slices.Clone(subs), func(s *v1alpha1.Subscription) bool {
			return s == nil || s.Namespace != namespace || csv == "" || version(&s.Status) != csv
		})
		if len(owners) == 0 {
			continue
		}
		oldest := slices.MinFunc(owners, func(a, b *v1alpha1.Subscription) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
		var said []olmcore.Diagnostic
		if len(owners) > 1 {
			said = append(said, olmcore.Diagnose(olmcore.Warning, ReasonSharedInstalledCSV, olmcore.RefOf(oldest), "status.installedCSV",
				"Subscriptions %s have installed CSV %s; spec.config of %s counts", relation.Names(owners), csv, oldest.Name))
		}
		if oldest.Spec == nil {
			return nil, said
		}
		return oldest.Spec.Config.DeepCopy(), said
	}
	return nil, nil
}
