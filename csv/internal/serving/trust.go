// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Trust returns the writes that keep the existing webhooks correct without a new installation. Trust updates their
// caBundles, and the namespaceSelectors of this CSV's webhooks. Once all described webhooks exist, Trust deletes the
// configurations and conversions that the spec no longer describes.
func (s Webhooks) Trust() []olmcore.Action { return factsOf(s).trust() }

func (f *facts) trust() []olmcore.Action {
	actions := append(f.removals(), f.source.reverted()...)
	if len(actions) > 0 && problemOf(f) != "" {
		actions = nil // the spec is invalid
	}
	actions = append(actions, updates(f, targets(actions), f.follow)...)
	slices.SortFunc(actions, deployment.ByTarget)
	return actions
}

// UpdateBundles returns the updates of the caBundles of webhook configurations and CRD conversions that call the
// operator.
func UpdateWebhookBundles(s Webhooks) []olmcore.Action {
	f := factsOf(s)
	actions := updates(f, nil, func(o olmcore.Object) olmcore.Action { return followBundles(f, o) })
	slices.SortFunc(actions, deployment.ByTarget)
	return actions
}

// updates returns the updates of admission webhook configurations and of the caBundles of conversions. update returns
// the update of one configuration, or nil. leftOut contains the objects that are deleted or reverted in the same call.
func updates(f *facts, leftOut sets.Set[olmcore.Key], update func(olmcore.Object) olmcore.Action) (actions []olmcore.Action) {
	for _, o := range f.all {
		a := update(o)
		if a != nil && !leftOut.Has(olmcore.KeyOf(o)) {
			actions = append(actions, a)
		}
	}
	for _, crd := range f.converted() {
		if leftOut.Has(olmcore.KeyOf(crd)) {
			continue
		}
		config := clientConfig(crd)
		if bundle := f.bundle(config.Service.Name, config.CABundle); !bytes.Equal(bundle, config.CABundle) {
			after := crd.DeepCopy()
			clientConfig(after).CABundle = bundle
			actions = append(actions, olmcore.UpdateOf(crd, after, olmcore.Cause{Reason: ReasonTrust, Message: "CRD " + crd.Name + doesNotTrust}))
		}
	}
	return actions
}

// targets returns the keys of the objects that actions write.
func targets(actions []olmcore.Action) sets.Set[olmcore.Key] {
	keys := sets.New[olmcore.Key]()
	for _, a := range actions {
		_, ref, _ := a.Describe()
		keys.Insert(ref.Key())
	}
	return keys
}

const doesNotTrust = " does not trust the serving certificate of the deployment that it calls"

// removals returns the deletions of the configurations whose description is no longer part of the spec. They are
// deleted once the present descriptions are valid and have configurations, so that no request is unchecked in the
// meantime.
//
// Differs: OLM keeps the configuration of a description whose type changed.
func (f *facts) removals() []olmcore.Action {
	gone := slices.DeleteFunc(slices.Clone(f.own), func(o olmcore.Object) bool {
		return f.isDescribed(f.from(o)) || f.from(o).generateName == ""
	})
	if len(gone) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(f.made)), isEmpty) {
		return nil
	}
	var actions []olmcore.Action
	for _, o := range gone {
		actions = append(actions, olmcore.DeleteOf(o, olmcore.Cause{
			Reason:  ReasonRemovedFromSpec,
			Message: "ClusterServiceVersion " + f.source.CSV.Name + " no longer describes webhook " + f.from(o).generateName,
		}))
	}
	return actions
}

func isEmpty(list []olmcore.Object) bool { return len(list) == 0 }

// follow returns the update of the caBundles of a configuration. For a configuration of this CSV, it also updates the
// namespaceSelectors, and rules that an installation narrowed and that may be wider now.
//
// Differs: OLM updates the namespaceSelectors only during installations. So after an OperatorGroup is created again,
// the webhooks of its CSVs are called for no namespace.
func (f *facts) follow(o olmcore.Object) olmcore.Action {
	after, why := withBundles(f, o)
	selector, ok := f.namespaces()
	if !ok || !slices.Contains(f.made[f.from(o)], o) {
		return updateTo(f, o, after, why)
	}
	copied := func() olmcore.Object {
		if after == o {
			after = o.DeepCopyObject().(olmcore.Object)
		}
		return after
	}
	for i, h := range hooksOf(o) {
		if !semantic.DeepEqual(cmp.Or(*h.selector, &metav1.LabelSelector{}), cmp.Or(selector, &metav1.LabelSelector{})) {
			*hooksOf(copied())[i].selector, why = selector, " is not called for the namespaces of OperatorGroup "+f.source.Group.Name
		}
	}
	if rules := widenedRules(f, o); rules != nil {
		*hooksOf(copied())[0].rules, why = rules, " has narrower rules than its ClusterServiceVersion may have"
	}
	return updateTo(f, o, after, why)
}

// followBundles is like follow, but updates only the caBundles.
func followBundles(f *facts, o olmcore.Object) olmcore.Action {
	after, why := withBundles(f, o)
	return updateTo(f, o, after, why)
}

// withBundles returns a copy of a configuration with the caBundles that it needs, and the reason for the update. If it
// has them already, withBundles returns the configuration itself and "".
func withBundles(f *facts, o olmcore.Object) (after olmcore.Object, why string) {
	after = o
	for i, config := range f.calls(o) {
		bundle := f.bundle(config.Service.Name, config.CABundle)
		if bytes.Equal(bundle, config.CABundle) {
			continue
		}
		if after == o {
			after = o.DeepCopyObject().(olmcore.Object)
		}
		f.calls(after)[i].CABundle, why = bundle, doesNotTrust
	}
	return after, why
}

// updateTo returns the update of a configuration, or nil if there is no reason for one.
func updateTo(f *facts, o, after olmcore.Object, why string) olmcore.Action {
	if why == "" {
		return nil
	}
	u := olmcore.UpdateOf(o, after, olmcore.Cause{Reason: ReasonTrust, Message: olmcore.RefOf(o).Kind + " " + o.GetName() + why})
	u.As = f.source.Account
	return u
}

// reverted returns the updates that remove the operator from the CRDs that it converts and no longer describes. It has
// no certificate for them, so each read of their custom resources would fail.
//
// Differs: OLM leaves them as they are.
func (s Webhooks) reverted() (actions []olmcore.Action) {
	described := sets.New[string]()
	for i := range s.CSV.Spec.WebhookDefinitions {
		described.Insert(s.CSV.Spec.WebhookDefinitions[i].ConversionCRDs...)
	}
	for _, crd := range s.CRDs {
		if !described.Has(crd.Name) && crd.DeletionTimestamp == nil && owned.IsConverter(s.CSV, crd) && IsConverted(s.CSV, crd) {
			actions = append(actions, olmcore.UpdateOf(crd, Unconverted(crd), olmcore.Cause{
				Reason:  ReasonRemovedFromSpec,
				Message: "ClusterServiceVersion " + s.CSV.Name + " no longer describes the conversion of CRD " + crd.Name,
			}))
		}
	}
	return actions
}
