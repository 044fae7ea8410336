// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
)

// MaxOperatorRefs is how many components an Operator object lists at most.
const MaxOperatorRefs = 1000

// maxOperatorText is how many bytes of conditions an Operator object lists: an object has
// an end, and whoever may label one object of his chooses what its conditions say.
const maxOperatorText = 256 << 10

// OperatorInput is everything that Operator looks at.
type OperatorInput struct {
	// Name is the name of the Operator object: what follows the prefix in a
	// component label key. Required.
	Name string
	// Operator is the object of that name, nil when there is none.
	Operator *operatorsv1.Operator
	// Components are the objects that carry the label, of every kind that can.
	// Metadata is enough where the conditions do not matter.
	Components []olmcore.Object
}

// Operator keeps the cluster-scoped Operator object of one component label: it
// is created while something carries the label, and its status lists what does,
// with conditions, sorted by kind, apiVersion, namespace and name. Copied
// ClusterServiceVersions are left out; the object is never deleted, people make
// them too. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/operators, operator
// controller, and its package decorators. Differs: at most MaxOperatorRefs are
// listed, and a Diagnostic says what is missing.
func Operator(in OperatorInput) (olmcore.Result, error) {
	if in.Name == "" {
		return olmcore.Result{}, &olmcore.InputError{Field: "Name", Problem: "is empty"}
	}
	for i, o := range in.Components {
		if olmcore.KeyOf(o).Name == "" {
			return olmcore.Result{}, &olmcore.InputError{Field: fmt.Sprintf("Components[%d]", i), Problem: "is nil or has no name"}
		}
	}
	var out olmcore.Result
	target := olmcore.Ref{APIVersion: operatorsv1.GroupVersion.String(), Kind: "Operator", Name: in.Name}
	key := olmcore.ComponentLabelPrefix + in.Name
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		out.Diagnostics = []olmcore.Diagnostic{{
			Severity: info, Reason: ReasonLabelKeyInvalid, Target: target, Path: "metadata.name",
			Message: "nothing can carry the label of this name: " + strings.Join(problems, "; "),
		}}
		return out, nil
	}
	members := in.members(key)
	if in.Operator == nil {
		if len(members) > 0 {
			created := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: in.Name}}
			created.APIVersion, created.Kind = target.APIVersion, target.Kind
			out.Actions = []olmcore.Action{olmcore.CreateOf(created, olmcore.Cause{
				Reason: ReasonOperatorMissing, Message: fmt.Sprintf("%d objects carry the label %s", len(members), key),
			})}
		}
		return out, nil
	}
	if cut := len(members) - MaxOperatorRefs; cut > 0 {
		members = members[:MaxOperatorRefs]
		out.Diagnostics = []olmcore.Diagnostic{{
			Severity: warning, Reason: ReasonOperatorRefsCut, Target: target, Path: "status.components.refs",
			Message: fmt.Sprintf("%d components are not listed", cut),
		}}
	}
	if in.Operator.DeletionTimestamp != nil || in.Operator.UID == "" || in.Operator.ResourceVersion == "" {
		return out, nil
	}
	want := operatorsv1.OperatorStatus{Components: &operatorsv1.Components{
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}},
	}}
	room := maxOperatorText
	for _, o := range members {
		ref := richReference(o)
		for _, c := range ref.Conditions {
			room -= 100 + len(c.Type) + len(c.Reason) + len(c.Message)
		}
		if room < 0 {
			ref.Conditions = nil
		}
		want.Components.Refs = append(want.Components.Refs, ref)
	}
	if room < 0 {
		out.Diagnostics = append(out.Diagnostics, olmcore.Diagnostic{
			Severity: warning, Reason: ReasonOperatorRefsCut, Target: target, Path: "status.components.refs",
			Message: "the conditions of some components are not listed, as they are too long together",
		})
	}
	if !equality.Semantic.DeepEqual(want, in.Operator.Status) {
		after := in.Operator.DeepCopy()
		after.Status = want
		out.Actions = []olmcore.Action{olmcore.UpdateStatusOf(in.Operator, after, olmcore.Cause{
			Reason: ReasonStatusObserved, Message: fmt.Sprintf("%d objects carry the label", len(members)),
		})}
	}
	return out, nil
}

// members returns what carries the label and counts, in order, each once.
func (in *OperatorInput) members(key string) []olmcore.Object {
	var list []olmcore.Object
	for _, o := range in.Components {
		if _, labelled := o.GetLabels()[key]; !labelled {
			continue
		}
		if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok && isCopied(c) {
			continue
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b olmcore.Object) int {
		x, y := olmcore.RefOf(a), olmcore.RefOf(b)
		return cmp.Or(strings.Compare(x.Kind, y.Kind), strings.Compare(x.APIVersion, y.APIVersion), strings.Compare(x.Namespace, y.Namespace),
			strings.Compare(x.Name, y.Name), strings.Compare(string(x.UID), string(y.UID)), strings.Compare(x.ResourceVersion, y.ResourceVersion))
	})
	return slices.CompactFunc(list, func(a, b olmcore.Object) bool { return olmcore.KeyOf(a) == olmcore.KeyOf(b) })
}

func richReference(o olmcore.Object) operatorsv1.RichReference {
	ref := olmcore.RefOf(o)
	rich := operatorsv1.RichReference{ObjectReference: &corev1.ObjectReference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
	}}
	if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
		if c.Status.Phase != v1alpha1.CSVPhaseNone {
			rich.Conditions = []operatorsv1.Condition{{
				Type: operatorsv1.ConditionType(c.Status.Phase), Status: corev1.ConditionTrue, Reason: string(c.Status.Reason), Message: c.Status.Message,
				LastUpdateTime: timeOrNil(c.Status.LastUpdateTime), LastTransitionTime: timeOrNil(c.Status.LastTransitionTime),
			}}
		}
		return rich
	}
	var typed struct {
		Status struct {
			Conditions []operatorsv1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if m, err := olmcore.ToMap(o); err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &typed) == nil {
		for _, c := range typed.Status.Conditions {
			if c.Type != "" && c.Status != "" {
				c.LastUpdateTime, c.LastTransitionTime = timeOrNil(c.LastUpdateTime), timeOrNil(c.LastTransitionTime)
				rich.Conditions = append(rich.Conditions, c)
			}
		}
	}
	return rich
}

// timeOrNil drops a time that says nothing, and what would not survive JSON of
// one that does.
func timeOrNil(t *metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(olmcore.Timestamp(t.Time))
}

// OperatorNames returns the names of the Operator objects to reconcile when an
// object was added, changed or deleted, sorted: those of its component labels,
// and its own name when it is one. Call it with the old and the new version.
func OperatorNames(o olmcore.Object) []string {
	key := olmcore.KeyOf(o) // the zero Key for a nil pointer of any type
	if key.Kind == "" {
		return nil
	}
	if key.Kind == "Operator" && key.Group == v1alpha1.GroupName {
		return []string{key.Name}
	}
	var names []string
	for label := range o.GetLabels() {
		if name, ok := strings.CutPrefix(label, olmcore.ComponentLabelPrefix); ok && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
