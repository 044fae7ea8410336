// SPDX-License-Identifier: Apache-2.0

// Package owned tells which objects belong to a ClusterServiceVersion, and to which one, and keeps its status: the
// phase, the history of phases, and the times that waits are measured from.
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

// CSV is what all packages below csv are about.
type CSV = v1alpha1.ClusterServiceVersion

// Validate returns the *olmcore.InputError of an Input about a CSV that lacks what every decision needs, nil for none.
func Validate(c *CSV, now time.Time) error {
	switch {
	case c == nil:
		return &olmcore.InputError{Field: "ClusterServiceVersion", Problem: "is nil"}
	case c.Name == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.name", Problem: "is empty"}
	case c.Namespace == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.namespace", Problem: "is empty"}
	case c.UID == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.uid", Problem: "is empty, so nothing could refer to its owner"}
	case now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	return nil
}

// By returns the owner that the labels of what belongs to a CSV name.
func By(c *CSV) olmcore.Owner {
	return olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: c.Namespace, Name: c.Name}
}

// Term is what a CSV is looked up by in the owner labels of objects.
func Term(c *CSV) olmcore.Term { return termOf(By(c)) }

// OwnerTerms are those of the CSVs that the owner labels of objects, which may be nil, name, or that they record as
// co-owners.
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

// ByGroup returns the owner that the labels of what belongs to an OperatorGroup name.
func ByGroup(g *operatorsv1.OperatorGroup) olmcore.Owner {
	return olmcore.Owner{Kind: operatorsv1.OperatorGroupKind, Namespace: g.Namespace, Name: g.Name}
}

// GroupLabelPrefix and the UID of an OperatorGroup are the key of a label of the namespaces that the group watches.
const GroupLabelPrefix = olmcore.LabelGroupPrefix

// ByIncarnation is By for this very CSV, not another one of its name.
func ByIncarnation(c *CSV) olmcore.Owner {
	owner := By(c)
	owner.UID = c.UID
	return owner
}

// IsCoOwner reports whether an object records a CSV, or one of its name without a UID, as a co-owner.
func IsCoOwner(c *CSV, o olmcore.Object) bool {
	return slices.ContainsFunc(olmcore.CoOwners(o.GetAnnotations()), func(co olmcore.Owner) bool {
		return co.Namespace == c.Namespace && co.Name == c.Name && (co.UID == "" || co.UID == c.UID)
	})
}

// IsReference reports whether an owner reference is to a CSV, of whatever version.
func IsReference(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return r.Kind == v1alpha1.ClusterServiceVersionKind && group == v1alpha1.GroupName
}

// ByAnother reports whether CSVs are owners of an object, with which it goes, and the one with this UID is not.
func ByAnother(owners []metav1.OwnerReference, uid types.UID) bool {
	return slices.ContainsFunc(owners, IsReference) &&
		!slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// Deployment reports whether a Deployment is a CSV's, by its labels and its owner reference.
func Deployment(c *CSV, d *appsv1.Deployment) bool {
	return d.Namespace == c.Namespace && By(c).Owns(d.Labels) && olmcore.OwnedBy(d, c.UID)
}

// Describes reports whether a CSV lists a CRD, as owned or as required.
func Describes(list []v1alpha1.CRDDescription, name string) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.CRDDescription) bool { return d.Name == name })
}

// Deployments returns the names of the Deployments of a CSV's install strategy.
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

// DescribesAny reports whether a list describes one of some CRDs.
func DescribesAny(list []v1alpha1.CRDDescription, names sets.Set[string]) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.CRDDescription) bool { return names.Has(d.Name) })
}

// Alongside returns the CSVs that a CRD came with, as InstallPlans note in its annotations: <namespace>/<name>.
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

// ConflictingOwner returns the first CSV, by namespace and name, of another namespace that a CRD came with too, the
// zero value for none. It also returns the zero value if olmcore.AnnotationFirstInstalledBy names this namespace and
// isConfined is false: the first operator stays the owner if a later InstallPlan of another namespace installs the same
// CRD. isConfined is true if the OperatorGroup names a ServiceAccount. Then the namespace belongs to a tenant, who may
// have installed the CRD of another operator before it.
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

// CameWith reports whether an InstallPlan recorded on a CRD that it came with this very CSV.
func CameWith(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains(Alongside(crd), types.NamespacedName{Namespace: c.Namespace, Name: c.Name}) ||
		ByIncarnation(c).Owns(crd.Labels)
}

// AnnotationConvertedBy is on a CRD that a CSV, <namespace>/<name>, made call its operator for conversions, so that the
// operator is taken out again.
const AnnotationConvertedBy = olmcore.KeyPrefix + "converted-by"

// IsConverter reports whether the CSV made a CRD call its operator.
func IsConverter(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Annotations[AnnotationConvertedBy] == c.Namespace+"/"+c.Name
}

// Converter returns the CSV that made a CRD call its operator, the zero value if none did.
func Converter(crd *apiextensionsv1.CustomResourceDefinition) types.NamespacedName {
	namespace, name, ok := strings.Cut(crd.Annotations[AnnotationConvertedBy], "/")
	if !ok {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Converters returns the CSVs that a CRD came with, and the one that made it call its operator.
func Converters(crd *apiextensionsv1.CustomResourceDefinition) []types.NamespacedName {
	all := Alongside(crd)
	if converter := Converter(crd); converter.Name != "" {
		all = append(all, converter)
	}
	return all
}

// Converts reports whether the conversion of a CRD is for this CSV to change: the CRD came with it, or it was made call
// this CSV's operator.
func Converts(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return CameWith(c, crd) || IsConverter(c, crd)
}

// IsInstalledBy reports whether a Subscription has a CSV installed or is about to.
func IsInstalledBy(c *CSV, s *v1alpha1.Subscription) bool {
	return s.Namespace == c.Namespace && (s.Status.InstalledCSV == c.Name || s.Status.CurrentCSV == c.Name)
}

// IsLabelValue reports whether a name fits a label: only then objects can be labelled as belonging to what has it.
func IsLabelValue(name string) bool { return len(validation.IsValidLabelValue(name)) == 0 }

// Find returns the object with a name, the zero value when there is none.
func Find[T metav1.Object](items []T, namespace, name string) (found T, ok bool) {
	for _, item := range items {
		if item.GetName() == name && item.GetNamespace() == namespace {
			return item, true
		}
	}
	return found, false
}

// ByName indexes the objects of a namespace by name.
func ByName[T metav1.Object](items []T, namespace string) map[string]T {
	index := make(map[string]T, len(items))
	for _, item := range items {
		if item.GetNamespace() == namespace {
			index[item.GetName()] = item
		}
	}
	return index
}

// ReasonStatusChanged is the reason of an action that writes a status.
const ReasonStatusChanged = "StatusChanged"

// SetPhase records a phase in a status, and writes to nothing that this shares with another. The conditions are a
// history: an entry is added when phase or reason differ from the last one, and the oldest go when there are more than
// the API's limit.
//
// Source: operator-framework/api pkg/operators/v1alpha1, SetPhase.
func SetPhase(s *v1alpha1.ClusterServiceVersionStatus, phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason, message string, now time.Time) {
	at := olmcore.Timestamp(now)
	s.LastUpdateTime = &at
	if s.Phase != phase || s.LastTransitionTime == nil {
		s.LastTransitionTime = &at
	}
	s.Phase, s.Reason, s.Message = phase, reason, message
	if n := len(s.Conditions); n == 0 || s.Conditions[n-1].Phase != phase || s.Conditions[n-1].Reason != reason {
		s.Conditions = append(slices.Clip(s.Conditions), v1alpha1.ClusterServiceVersionCondition{
			Phase: phase, Reason: reason, Message: message,
			LastUpdateTime: s.LastUpdateTime, LastTransitionTime: s.LastTransitionTime,
		})
	}
	if extra := len(s.Conditions) - v1alpha1.ConditionsLengthLimit; extra > 0 {
		s.Conditions = s.Conditions[extra:]
	}
}

// Moved returns the Transition from the recorded status to the one that is written.
func Moved(before *v1alpha1.ClusterServiceVersion, after *v1alpha1.ClusterServiceVersionStatus) olmcore.Transition {
	return olmcore.Transition{
		Target: olmcore.RefOf(before), Type: "Phase", From: string(before.Status.Phase), To: string(after.Phase),
		Reason: string(after.Reason), Message: after.Message, At: *after.LastUpdateTime,
		Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
	}
}

// Since returns the time from a recorded instant to now. Nothing recorded, and an instant in the future, count as now.
func Since(t *metav1.Time, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return max(0, now.Sub(t.Time))
}

// Wait returns the time to the next try of what no event ends for sure. The pauses between the tries are 5 s, 10 s, 20
// s ... up to limit after an anchor, so that no memory is needed. elapsed is the time since the anchor.
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

// HasSucceeded reports whether the history shows that the CSV was Succeeded.
func HasSucceeded(s *v1alpha1.ClusterServiceVersionStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c v1alpha1.ClusterServiceVersionCondition) bool {
		return c.Phase == v1alpha1.CSVPhaseSucceeded
	})
}

// CountSinceSuccess counts the entries of the history with a reason since the last success that it shows.
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
