// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// EffectiveConfig returns spec.config of the Subscription that a
// ClusterServiceVersion belongs to, as a copy: the one of its namespace whose
// status.installedCSV names it, else whose status.currentCSV does; of several
// the oldest, then the first by name, and a Diagnostic names them. It is nil when
// there is no such Subscription or that one has none. subs may hold Subscriptions
// of any namespace, in any order; nil entries are ignored. Package csv goes by the
// same rule.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/overrides,
// findOwnerSubscription. Differs: OLM takes the first of an unordered list, and
// only by installedCSV, so that a new version is rolled out twice.
func EffectiveConfig(subs []*v1alpha1.Subscription, namespace, csv string) (*v1alpha1.SubscriptionConfig, []olmcore.Diagnostic) {
	if csv == "" {
		return nil, nil
	}
	owners := ownersOf(subs, namespace, csv, func(s *v1alpha1.Subscription) string { return s.Status.InstalledCSV })
	if len(owners) == 0 {
		owners = ownersOf(subs, namespace, csv, func(s *v1alpha1.Subscription) string { return s.Status.CurrentCSV })
	}
	if len(owners) == 0 {
		return nil, nil
	}
	var diagnostics []olmcore.Diagnostic
	if len(owners) > 1 {
		diagnostics = []olmcore.Diagnostic{sharedCSV(owners, csv)}
	}
	if owners[0].Spec == nil {
		return nil, diagnostics
	}
	return owners[0].Spec.Config.DeepCopy(), diagnostics
}

// ownersOf returns the Subscriptions that name a CSV, the one that counts first.
func ownersOf(subs []*v1alpha1.Subscription, namespace, csv string, named func(*v1alpha1.Subscription) string) []*v1alpha1.Subscription {
	var owners []*v1alpha1.Subscription
	for _, s := range subs {
		if s != nil && s.Namespace == namespace && named(s) == csv {
			owners = append(owners, s)
		}
	}
	slices.SortFunc(owners, func(a, b *v1alpha1.Subscription) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return owners
}

func sharedCSV(owners []*v1alpha1.Subscription, csv string) olmcore.Diagnostic {
	names := make([]string, len(owners))
	for i, s := range owners {
		names[i] = s.Name
	}
	slices.Sort(names)
	return olmcore.Diagnose(olmcore.Warning, ReasonSharedInstalledCSV, olmcore.RefOf(owners[0]), "status.installedCSV",
		"Subscriptions %s have installed CSV %s; spec.config of %s counts", strings.Join(names, ", "), csv, owners[0].Name)
}
