// SPDX-License-Identifier: Apache-2.0

// Package owned determines which objects belong to a ClusterServiceVersion. It also writes the phases and their history
// into its status, and measures waits from recorded times.
package owned

import (
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
)

// CSV is a short name for ClusterServiceVersion in the packages below csv.
type CSV = v1alpha1.ClusterServiceVersion

// Validate returns an *olmcore.InputError if c lacks its name, namespace or UID, or if now is zero. Otherwise it
// returns nil.
func Validate(c *CSV, now time.Time) error {
	switch {
	case c == nil:
		return &olmcore.InputError{Field: "ClusterServiceVersion", Problem: "is nil"}
	case c.Name == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.name", Problem: "is empty"}
	case c.Namespace == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.namespace", Problem: "is empty"}
	case c.UID == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.uid", Problem: "is empty, so no object could reference its owner"}
	case now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	return nil
}

// By returns the olmcore.Owner that the owner labels of a CSV's objects contain. Its UID is empty.
func By(c *CSV) olmcore.Owner {
	return olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: c.Namespace, Name: c.Name}
}

// Term returns the index term by which objects of a CSV are looked up. OwnerTerms returns the same term for objects
// with the owner labels of the CSV.
func Term(c *CSV) olmcore.Term { return termOf(By(c)) }

// OwnerTerms returns the index terms of the owners and co-owners that objects record in labels and annotations. An
// object may be nil.
func OwnerTerms(objects ...olmcore.Object) (terms []olmcore.Term) {
	for _, o := range objects {
		if o == nil {
			continue
		}
		if owner, labelled := olmcore.OwnerOf(o.GetLabels()); labelled {
			terms = append(terms, termOf(owner))
		}
		for _, owner := range olmcore.CoOwners(o.GetAnnotations()) {
			terms = append(terms, termOf(owner))
		}
	}
	return terms
}

func termOf(owner olmcore.Owner) olmcore.Term {
	return olmcore.Term{Of: owner.Kind, Value: owner.Namespace + "/" + owner.Name}
}

// ByGroup returns an olmcore.Owner for an OperatorGroup, without a UID. The owner labels of objects of the
// OperatorGroup name this owner.
func ByGroup(g *operatorsv1.OperatorGroup) olmcore.Owner {
	return olmcore.Owner{Kind: operatorsv1.OperatorGroupKind, Namespace: g.Namespace, Name: g.Name}
}

// GroupLabelPrefix is the prefix of a label key on the namespaces that an OperatorGroup watches. The UID of the
// OperatorGroup follows it.
const GroupLabelPrefix = olmcore.LabelGroupPrefix

// ByIncarnation returns an olmcore.Owner for a CSV, with its UID. Unlike the result of By, this owner does not own
// objects whose labels contain the UID of another CSV.
func ByIncarnation(c *CSV) olmcore.Owner {
	owner := By(c)
	owner.UID = c.UID
	return owner
}

// IsCoOwner reports whether an object records a CSV as a co-owner. A record without a UID matches by namespace and
// name.
func IsCoOwner(c *CSV, o olmcore.Object) bool {
	return slices.ContainsFunc(olmcore.CoOwners(o.GetAnnotations()), func(co olmcore.Owner) bool {
		return co.Namespace == c.Namespace && co.Name == c.Name && (co.UID == "" || co.UID == c.UID)
	})
}

// IsReference reports whether an owner reference names a CSV, in any API version.
func IsReference(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return r.Kind == v1alpha1.ClusterServiceVersionKind && group == v1alpha1.GroupName
}

// ByAnother reports whether a list of owner references names at least one CSV, but nothing with the given UID.
func ByAnother(owners []metav1.OwnerReference, uid types.UID) bool {
	return slices.ContainsFunc(owners, IsReference) &&
		!slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// Deployment reports whether a Deployment belongs to a CSV, by its labels and its owner reference.
func Deployment(c *CSV, d *appsv1.Deployment) bool {
	return d.Namespace == c.Namespace && By(c).Owns(d.Labels) && olmcore.OwnedBy(d, c.UID)
}

// Describes reports whether a list of owned or required CRDs of a CSV contains the CRD with the given name.
func Describes(list []v1alpha1.CRDDescription, name string) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.CRDDescription) bool { return d.Name == name })
}

// Deployments returns the names of the Deployments in a CSV's install strategy.
func Deployments(c *CSV) sets.Set[string] {
	names := sets.New[string]()
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names.Insert(d.Name)
	}
	return names
}

// OwnedCRDs returns the names of the CRDs that a CSV lists as owned.
func OwnedCRDs(c *CSV) sets.Set[string] {
	names := sets.New[string]()
	for _, d := range c.Spec.CustomResourceDefinitions.Owned {
		names.Insert(d.Name)
	}
	return names
}

// DescribesAny reports whether a list of owned or required CRDs contains one of the names.
func DescribesAny(list []v1alpha1.CRDDescription, names sets.Set[string]) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.CRDDescription) bool { return names.Has(d.Name) })
}

// Alongside returns the CSVs that a CRD was installed with. InstallPlans record these CSVs in annotations of the CRD as
// <namespace>/<name>.
func Alongside(crd *apiextensionsv1.CustomResourceDefinition) []types.NamespacedName {
	const prefix = "operatorframework.io/installed-alongside-"
	var noted []types.NamespacedName
	for key, value := range crd.Annotations {
		namespace, name, ok := strings.Cut(value, "/")
		if strings.HasPrefix(key, prefix) && ok && name != "" && !strings.Contains(name, "/") {
			noted = append(noted, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return noted
}

// ConflictingOwner returns a CSV of another namespace that a CRD was also installed with. If there are several, it
// returns the first by namespace and name. If there is none, it returns the zero value. isConfined is true if the
// OperatorGroup of the namespace names a ServiceAccount.
//
// If isConfined is false and olmcore.AnnotationFirstInstalledBy names this namespace, the result is the zero value. So
// the first operator stays the owner if an InstallPlan of another namespace installs the same CRD later. If isConfined
// is true, the annotation is ignored, because a tenant may have installed the CRD of another operator before that
// operator was installed.
func ConflictingOwner(crd *apiextensionsv1.CustomResourceDefinition, namespace string, isConfined bool) (owner types.NamespacedName) {
	if !isConfined && crd.Annotations[olmcore.AnnotationFirstInstalledBy] == namespace {
		return owner
	}
	for _, key := range Alongside(crd) {
		if key.Namespace != namespace && (owner.Name == "" || key.String() < owner.String()) {
			owner = key
		}
	}
	return owner
}

// CameWith reports whether annotations or owner labels of a CRD record that the CRD was installed with this CSV.
func CameWith(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains(Alongside(crd), types.NamespacedName{Namespace: c.Namespace, Name: c.Name}) ||
		ByIncarnation(c).Owns(crd.Labels)
}

// AnnotationConvertedBy is an annotation of a CRD that calls an operator for conversions. Its value is the CSV that set
// the conversion, as <namespace>/<name>. It is used to remove the operator from the CRD later.
const AnnotationConvertedBy = olmcore.KeyPrefix + "converted-by"

// IsConverter reports whether AnnotationConvertedBy of a CRD names the CSV.
func IsConverter(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Annotations[AnnotationConvertedBy] == c.Namespace+"/"+c.Name
}

// Converter returns the CSV that AnnotationConvertedBy of a CRD names, or the zero value if there is none.
func Converter(crd *apiextensionsv1.CustomResourceDefinition) types.NamespacedName {
	namespace, name, ok := strings.Cut(crd.Annotations[AnnotationConvertedBy], "/")
	if !ok {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Converters returns the CSVs that a CRD was installed with, and the CSV that AnnotationConvertedBy names.
func Converters(crd *apiextensionsv1.CustomResourceDefinition) []types.NamespacedName {
	all := Alongside(crd)
	if converter := Converter(crd); converter.Name != "" {
		all = append(all, converter)
	}
	return all
}

// Converts reports whether a CSV may change the conversion of a CRD. The CRD must have been installed with the CSV, or
// its AnnotationConvertedBy must name the CSV.
func Converts(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return CameWith(c, crd) || IsConverter(c, crd)
}

// IsInstalledBy reports whether a Subscription has installed a CSV or is about to install it.
func IsInstalledBy(c *CSV, s *v1alpha1.Subscription) bool {
	return s.Namespace == c.Namespace && (s.Status.InstalledCSV == c.Name || s.Status.CurrentCSV == c.Name)
}

// IsLabelValue reports whether a name is a valid label value. If the name of an owner is not a valid label value, no
// object can have the owner labels of that owner.
func IsLabelValue(name string) bool { return len(validation.IsValidLabelValue(name)) == 0 }

// Find returns the object with the given namespace and name, or the zero value and false if there is none.
func Find[T metav1.Object](items []T, namespace, name string) (found T, ok bool) {
	for _, item := range items {
		if item.GetName() == name && item.GetNamespace() == namespace {
			return item, true
		}
	}
	return found, false
}

// ByName returns a map of the objects of a namespace. The keys are the names of the objects.
func ByName[T metav1.Object](items []T, namespace string) map[string]T {
	index := make(map[string]T, len(items))
	for _, item := range items {
		if item.GetNamespace() == namespace {
			index[item.GetName()] = item
		}
	}
	return index
}

// ReasonStatusChanged is the reason of an action that updates a status.
const ReasonStatusChanged = "StatusChanged"

// SetPhase sets the phase of a status, and appends an entry to the history of phases in status.conditions. The entry is
// appended only if the phase or the reason differs from the last entry. If the history exceeds the limit of the API,
// its oldest entries are dropped. SetPhase never writes to the existing array of s.Conditions, so it is safe if s is a
// shallow copy of another status.
//
// Source: operator-framework/api pkg/operators/v1alpha1, SetPhase.
func SetPhase(s *v1alpha1.ClusterServiceVersionStatus, phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason, message string, now time.Time) {
	at := olmcore.Timestamp(now)
	s.LastUpdateTime = &at
	if s.Phase != phase || s.LastTransitionTime == nil {
		s.LastTransitionTime = &at
	}
	s.Phase = phase
	s.Reason = reason
	s.Message = message
	n := len(s.Conditions)
	if n == 0 || s.Conditions[n-1].Phase != phase || s.Conditions[n-1].Reason != reason {
		s.Conditions = append(slices.Clip(s.Conditions), v1alpha1.ClusterServiceVersionCondition{
			Phase: phase, Reason: reason, Message: message,
			LastUpdateTime: s.LastUpdateTime, LastTransitionTime: s.LastTransitionTime,
		})
	}
	if extra := len(s.Conditions) - v1alpha1.ConditionsLengthLimit; extra > 0 {
		s.Conditions = s.Conditions[extra:]
	}
}

// Moved returns the Transition from the phase of before to the phase in after. LastUpdateTime of after must not be nil.
func Moved(before *v1alpha1.ClusterServiceVersion, after *v1alpha1.ClusterServiceVersionStatus) olmcore.Transition {
	return olmcore.Transition{
		Target: olmcore.RefOf(before), Type: "Phase", From: string(before.Status.Phase), To: string(after.Phase),
		Reason: string(after.Reason), Message: after.Message, At: *after.LastUpdateTime,
		Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
	}
}

// Since returns the time from t to now. It returns 0 if t is nil or in the future.
func Since(t *metav1.Time, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return max(0, now.Sub(t.Time))
}

// Wait returns the time until the next check of a state that may end without an event. elapsed is the time since the
// state began, for example since a deletion timestamp. The checks follow at intervals of 5 s, 10 s, 20 s and so on, up
// to limit. The result depends only on elapsed and limit, so the caller stores no state.
func Wait(elapsed, limit time.Duration) time.Duration {
	if elapsed > 24*time.Hour {
		return limit
	}
	next, step := 5*time.Second, 5*time.Second
	for next <= elapsed {
		step = min(2*step, limit)
		next += step
	}
	return next - elapsed
}

// CountSinceSuccess returns how many entries with the given reason follow the last Succeeded entry in the history of a
// status.
func CountSinceSuccess(s *v1alpha1.ClusterServiceVersionStatus, reason v1alpha1.ConditionReason) int {
	n := 0
	for _, c := range slices.Backward(s.Conditions) {
		if c.Phase == v1alpha1.CSVPhaseSucceeded {
			break
		}
		if c.Reason == reason {
			n++
		}
	}
	return n
}
