// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// rule decides about a target. Neither the object nor its version is being deleted.
type rule func(w *world, t *Target) Decision

// ruleOf returns the rule for steps of a kind. Most kinds have the rule byContent.
func ruleOf(kind string) rule {
	switch kind {
	case kinds.ServiceAccount:
		return accountRule
	case kinds.CSV:
		return versionRule
	case kinds.CRD:
		return definitionRule
	case kinds.Subscription:
		return subscriptionRule
	case kinds.PullSecret:
		return pullSecretRule
	}
	return byContent
}

// judge returns the Decision about one object.
func judge(w *world, t *Target) Decision {
	if t.Observed != nil && t.Observed.GetDeletionTimestamp() != nil {
		return waiting("%s", finishDeleting(t.Key))
	}
	if t.Kind.Labelled && len(t.Versions) > 0 {
		csv := w.here(t.Versions[0])
		if csv != nil && csv.DeletionTimestamp != nil {
			// The cleanup of the version deletes objects with its owner labels, so none is created.
			return waiting("%s", finishDeleting(olmcore.KeyOf(csv)))
		}
	}
	return t.rule(w, t)
}

// versionRule creates ClusterServiceVersions and never changes them.
func versionRule(w *world, t *Target) Decision {
	isNamed := slices.Contains(w.in.Plan.Spec.ClusterServiceVersionNames, t.Key.Name)
	want := w.described[t.Key.Name]
	if want == nil {
		_, err := typed(t, t.desired.Object)
		return unreadable(t.Key.Kind, t.Key.Name, err)
	}
	if !isNamed || t.Observed == nil {
		if v := checkOwnedCRDs(w, want, isNamed); v.Refused() {
			return v
		}
	}
	if t.Observed == nil {
		want = want.DeepCopy()
		// With the finalizer, nothing is left behind even if the version is deleted before package csv observes it.
		if !slices.Contains(want.Finalizers, olmcore.FinalizerCSVCleanup) {
			want.Finalizers = append(want.Finalizers, olmcore.FinalizerCSVCleanup)
		}
		return create(w, t, want)
	}
	have := t.Observed.(*v1alpha1.ClusterServiceVersion)
	if have.IsCopied() {
		from := cmp.Or(have.Labels[olmcore.LabelCopiedFrom], have.Annotations["olm.operatorNamespace"])
		return blocked("a copy of ClusterServiceVersion %s from namespace %s exists here", have.Name, from)
	}
	if t.Recorded == v1alpha1.StepStatusUnknown && !apiequality.Semantic.DeepEqual(want.Spec, have.Spec) {
		return Decision{Outcome: Done}.with(w.about(t.Steps[0], olmcore.Info, reasons.CSVContentDiffers,
			"ClusterServiceVersion %s exists with another spec", have.Name))
	}
	return Decision{Outcome: Done}
}

// checkOwnedCRDs refuses a ClusterServiceVersion if another one of the namespace owns one of its
// CustomResourceDefinitions. An owner in the upgrade chain of a version that the plan names is allowed. So is an owner
// that the plan replaces by a version without that definition, unless definitions move in a circle. If two plans were
// created independently, the plan that runs second is refused, because its version could never be installed.
//
// Differs: OLM also refuses the version if the plan replaces the owner.
func checkOwnedCRDs(w *world, version *v1alpha1.ClusterServiceVersion, isNamed bool) Decision {
	var chain map[string]bool
	if isNamed {
		chain = w.chain(version)
	}
	circular := w.waitsForItself(version)
	for _, crd := range version.Spec.CustomResourceDefinitions.Owned {
		owners := slices.DeleteFunc(w.ownersHere(crd.Name), func(name string) bool {
			return chain[name] || !circular && w.handedOver(name, crd.Name) != nil
		})
		switch {
		case len(owners) > 1:
			return blocked("error checking crd owners for: %s: Existing CSVs %v in namespace %s all claim to own CRD %s",
				version.Name, owners, w.in.Plan.Namespace, crd.Name)
		case len(owners) == 1 && isNamed:
			return blocked("pre-existing CRD owners found for CRD %s of CSV %s, which does not replace %s", crd.Name, version.Name, owners[0])
		case len(owners) == 1 && owners[0] != version.Name:
			return blocked("pre-existing CRD owners found for owned CRD(s) of dependent CSV %s", version.Name)
		}
	}
	return Decision{}
}

// chain returns the names of the upgrade chain of a version that does not exist yet. Two versions are linked if one
// replaces the other, and each of them exists or is this version.
func (w *world) chain(version *v1alpha1.ClusterServiceVersion) map[string]bool {
	replaces := map[string]string{version.Name: version.Spec.Replaces}
	for _, csv := range w.in.ClusterServiceVersions {
		if !csv.IsCopied() {
			replaces[csv.Name] = csv.Spec.Replaces
		}
	}
	chain := map[string]bool{version.Name: true}
	for grown := true; grown; {
		grown = false
		for name, old := range replaces {
			_, exists := replaces[old]
			if exists && chain[name] != chain[old] {
				chain[name] = true
				chain[old] = true
				grown = true
			}
		}
	}
	return chain
}

// waitsForItself reports whether versions of the plan hand over definitions to each other in a circle. Each version
// would wait until the predecessor of the next one is deleted, which is only deleted once its successor is installed.
func (w *world) waitsForItself(version *v1alpha1.ClusterServiceVersion) bool {
	seen := map[string]bool{}
	for open := []*v1alpha1.ClusterServiceVersion{version}; len(open) > 0; open = open[1:] {
		chain := w.chain(open[0])
		for _, crd := range open[0].Spec.CustomResourceDefinitions.Owned {
			for _, owner := range w.ownersHere(crd.Name) {
				giver := w.handedOver(owner, crd.Name)
				switch {
				case chain[owner] || giver == nil || seen[giver.Name]:
				case giver.Name == version.Name:
					return true
				default:
					seen[giver.Name] = true
					open = append(open, giver)
				}
			}
		}
	}
	return false
}

// ownersHere returns the sorted names of the live ClusterServiceVersions of the namespace that own a definition.
func (w *world) ownersHere(crd string) (owners []string) {
	for _, csv := range w.in.ClusterServiceVersions {
		if !csv.IsCopied() && csv.DeletionTimestamp == nil && owns(csv, crd) {
			owners = append(owners, csv.Name)
		}
	}
	slices.Sort(owners)
	return owners
}

// handedOver returns the version of the plan that replaces an owner of a definition, directly or through others, and
// does not own the definition any more. It returns nil if there is none.
func (w *world) handedOver(owner, crd string) *v1alpha1.ClusterServiceVersion {
	for _, name := range slices.Sorted(maps.Keys(w.described)) {
		successor := w.described[name]
		if owns(successor, crd) {
			continue
		}
		seen := map[string]bool{}
		for old := w.here(successor.Spec.Replaces); old != nil && !seen[old.Name]; old = w.here(old.Spec.Replaces) {
			seen[old.Name] = true
			if old.Name == owner {
				return successor
			}
		}
	}
	return nil
}

// subscriptionRule creates a Subscription with the name of the plan and never changes it. If another Subscription of
// the namespace names the same package, the plan creates none: of two Subscriptions to one package, one would never
// reach its channel head.
func subscriptionRule(w *world, t *Target) Decision {
	if t.Observed != nil {
		return Decision{Outcome: Done}
	}
	want := withMetadata(t.desired.Object)
	pkg, _ := bundle.Fields(want, "spec")["name"].(string)
	if other := w.subscriptionTo(pkg, t.Key.Name); other != nil {
		return Decision{Outcome: Done, Status: v1alpha1.StepStatusNotCreated}.with(w.about(t.Steps[0], olmcore.Info, reasons.SubscriptionExists,
			"Subscription %s is not created: Subscription %s names package %s, too", t.Key.Name, other.Name, pkg))
	}
	metadata := bundle.Fields(want, "metadata")
	annotations := bundle.Strings(metadata, "annotations")
	annotations[relation.GeneratedBy] = w.in.Plan.Name
	metadata["labels"], metadata["annotations"] = bundle.Strings(metadata, "labels"), annotations
	o, err := typed(t, want)
	if err != nil {
		return unreadable(t.Key.Kind, t.Key.Name, err)
	}
	return create(w, t, o)
}

// pullSecretRule copies the pull Secret of a catalog that all namespaces see. It does not change an existing copy.
func pullSecretRule(w *world, t *Target) Decision {
	if t.Observed != nil {
		return Decision{Outcome: Done}
	}
	i := slices.IndexFunc(w.in.PullSecrets, func(s *corev1.Secret) bool { return s.Name == t.Key.Name && s.Namespace == w.in.OLMNamespace })
	if i < 0 {
		return blocked("secret %s does not exist - secrets %q not found", t.Key.Name, t.Key.Name)
	}
	source := w.in.PullSecrets[i].DeepCopy()
	if !w.in.CopyAnySecret && !isPullSecret(w, source) {
		return blocked("secret %s is not a pull secret of any catalog in namespace %s", source.Name, w.in.OLMNamespace)
	}
	return creating(w, t, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: t.Key.Name, Namespace: t.Key.Namespace, Labels: map[string]string{olmcore.LabelManaged: "true"}},
		Data:       source.Data, Type: source.Type,
	})
}

// isPullSecret reports whether any namespace may have a copy of a Secret. The Secret must contain registry credentials,
// and a catalog that all namespaces see must need it.
func isPullSecret(w *world, s *corev1.Secret) bool {
	return (s.Type == corev1.SecretTypeDockerConfigJson || s.Type == corev1.SecretTypeDockercfg) &&
		slices.ContainsFunc(w.in.CatalogSources, func(c *v1alpha1.CatalogSource) bool {
			return c.Namespace == s.Namespace && c.DeletionTimestamp == nil && slices.Contains(c.Spec.Secrets, s.Name)
		})
}

// accountRule is the rule of ServiceAccounts. Kubernetes creates the ServiceAccount "default" itself.
func accountRule(w *world, t *Target) Decision {
	switch {
	case t.Key.Name != "default":
		return byContent(w, t)
	case t.Observed == nil:
		return waiting("waiting for ServiceAccount default")
	}
	return Decision{Outcome: Done}
}

// typed returns JSON values as an object of the target's kind.
func typed(t *Target, object map[string]any) (olmcore.Object, error) {
	o := olmcore.NewObject(t.Kind.GVK)
	if err := decode.FromMap(object, o); err != nil {
		return nil, err
	}
	if o.GetName() != t.Key.Name {
		return nil, fmt.Errorf("its name is %q", o.GetName())
	}
	return o, nil
}
