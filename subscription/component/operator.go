// SPDX-License-Identifier: Apache-2.0

// Package component groups the objects of an operator. [Labels] adds the component label to a Subscription, to the
// ClusterServiceVersion that it installed and to the objects that the ClusterServiceVersion owns. [Reconcile]
// maintains the cluster-scoped Operator object of the label.
//
// Packages installplan and csv create objects with their labels, so this package only adds labels that are missing.
// That is why it does not label a ClusterServiceVersion while package csv still writes it.
package component

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// MaxRefs is the maximum number of components that the status of an Operator object lists.
const MaxRefs = 1000

// maxText is the maximum number of bytes of all conditions in an Operator object. The size of an object is limited, and
// a tenant chooses the conditions of an object that he labels.
const maxText = 256 << 10

// Input is the input of Reconcile.
type Input struct {
	// Name is the name of the Operator object. The key of the component label consists of a prefix and this name. Name is
	// required.
	Name string
	// Operator is the Operator object with that name, or nil if it does not exist.
	Operator *operatorsv1.Operator
	// Components contains the objects with the component label. An object without a status is listed without conditions.
	Components []olmcore.Object
}

// Reconcile maintains the cluster-scoped Operator object of one component label. It creates the Operator object if at
// least one object has the label and the API server would accept the name. The status of the Operator object lists the
// labelled objects and their conditions, sorted by kind, apiVersion, namespace and name. Copied ClusterServiceVersions
// are not listed. The Operator object is never deleted, because users also create such objects. Reconcile returns an
// *olmcore.InputError if the input is invalid.
//
// Source: operator-lifecycle-manager pkg/controller/operators/operators, operator controller, and its package
// decorators. Differs: OLM lists all objects in the status. This library lists at most MaxRefs objects, and a
// Diagnostic reports how many are not listed.
func Reconcile(in Input) (olmcore.Result, error) {
	if in.Name == "" {
		return olmcore.Result{}, &olmcore.InputError{Field: "Name", Problem: "is empty"}
	}
	if err := relation.ValidateNames("Components", in.Components); err != nil {
		return olmcore.Result{}, err
	}
	target := olmcore.Ref{APIVersion: operatorsv1.GroupVersion.String(), Kind: "Operator", Name: in.Name}
	key := olmcore.ComponentLabelPrefix + in.Name
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return olmcore.Result{Diagnostics: []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Info, ReasonLabelKeyInvalid, target, "metadata.name",
			"no object can have the label of this name: %s", strings.Join(problems, "; "))}}, nil
	}
	members := in.members(key)
	switch {
	case in.Operator == nil && len(members) == 0:
		return olmcore.Result{}, nil
	case in.Operator == nil && len(validation.IsDNS1123Subdomain(in.Name)) > 0:
		// The Diagnostic is about a member, because an Event cannot be recorded for an object whose name is invalid.
		return olmcore.Result{Diagnostics: []olmcore.Diagnostic{
			olmcore.Diagnose(olmcore.Warning, ReasonOperatorNameInvalid, representative(members),
				fmt.Sprintf("metadata.labels[%q]", key), "no Operator object is created for the label %s: %q is not a valid object name: %s",
				key, in.Name, strings.Join(validation.IsDNS1123Subdomain(in.Name), "; "))}}, nil
	case in.Operator == nil:
		return olmcore.Result{Actions: []olmcore.Action{createOperator(in.Name, key, len(members))}}, nil
	}
	var out olmcore.Result
	report := func(format string, args ...any) {
		out.Diagnostics = append(
			out.Diagnostics,
			olmcore.Diagnose(olmcore.Warning, ReasonOperatorRefsCut, target, "status.components.refs", format, args...),
		)
	}
	listed := members[:min(len(members), MaxRefs)]
	if cut := len(members) - len(listed); cut > 0 {
		report("%d components are not listed", cut)
	}
	if !relation.Writable(in.Operator) {
		return out, nil
	}
	refs, isCut := references(listed)
	if isCut {
		report("the conditions of some components are not listed because they are too long in total")
	}
	want := operatorsv1.OperatorStatus{Components: &operatorsv1.Components{
		LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}},
		},
		Refs: refs,
	}}
	if !isRecorded(&in.Operator.Status, &want) {
		after := in.Operator.DeepCopy()
		after.Status = want
		out.Actions = []olmcore.Action{olmcore.UpdateStatusOf(in.Operator, after, olmcore.Cause{
			Reason: ReasonStatusObserved, Message: fmt.Sprintf("%d objects have the label", len(listed)),
		})}
	}
	return out, nil
}

// isRecorded reports whether a status is recorded. Escaped characters do not count, because OLM escapes none.
func isRecorded(recorded, status *operatorsv1.OperatorStatus) bool {
	if equality.Semantic.DeepEqual(recorded, status) {
		return true
	}
	printed := recorded.DeepCopy()
	if printed.Components != nil {
		for i := range printed.Components.Refs {
			printConditions(printed.Components.Refs[i].Conditions)
		}
	}
	return equality.Semantic.DeepEqual(printed, status)
}

// printConditions escapes the invisible characters of conditions. Tenants write the conditions of their objects, and an
// Operator object is cluster-scoped.
func printConditions(conditions []operatorsv1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status = operatorsv1.ConditionType(printable.Text(string(c.Type))), corev1.ConditionStatus(printable.Text(string(c.Status)))
		c.Reason, c.Message = printable.Text(c.Reason), printable.Text(c.Message)
	}
}

// representative returns a reference to the first Subscription of members, or to the first member if there is none.
func representative(members []olmcore.Object) olmcore.Ref {
	i := slices.IndexFunc(members, func(o olmcore.Object) bool { return olmcore.RefOf(o).Kind == v1alpha1.SubscriptionKind })
	return olmcore.RefOf(members[max(i, 0)])
}

// references returns the components for the status, and whether conditions were left out because they are too long in
// total.
func references(components []olmcore.Object) (refs []operatorsv1.RichReference, isCut bool) {
	room := maxText
	for _, o := range components {
		ref := richReference(o)
		printConditions(ref.Conditions)
		for _, c := range ref.Conditions {
			room -= 100 + len(c.Type) + len(c.Reason) + len(c.Message)
		}
		if room < 0 {
			ref.Conditions = nil
		}
		refs = append(refs, ref)
	}
	return refs, room < 0
}

// createOperator returns the action that creates the Operator object for a label that some objects have.
func createOperator(name, key string, members int) olmcore.Action {
	created := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	created.APIVersion, created.Kind = operatorsv1.GroupVersion.String(), "Operator"
	return olmcore.CreateOf(created, olmcore.Cause{
		Reason: ReasonOperatorMissing, Message: fmt.Sprintf("%d objects have the label %s", members, key),
	})
}

// members returns the objects with the label that are listed, sorted and without duplicates.
func (in *Input) members(key string) []olmcore.Object {
	list := slices.DeleteFunc(slices.Clone(in.Components), func(o olmcore.Object) bool {
		c, isCSV := o.(*v1alpha1.ClusterServiceVersion)
		return !has(o, key) || isCSV && c.IsCopied()
	})
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
				Type: operatorsv1.ConditionType(
					c.Status.Phase,
				), Status: corev1.ConditionTrue, Reason: string(c.Status.Reason), Message: c.Status.Message,
				LastUpdateTime: timeOrNil(c.Status.LastUpdateTime), LastTransitionTime: timeOrNil(c.Status.LastTransitionTime),
			}}
		}
		return rich
	}
	var status struct {
		Conditions []operatorsv1.Condition `json:"conditions"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(statusOf(o), &status) == nil {
		for _, c := range status.Conditions {
			if c.Type != "" && c.Status != "" {
				c.LastUpdateTime, c.LastTransitionTime = timeOrNil(c.LastUpdateTime), timeOrNil(c.LastTransitionTime)
				rich.Conditions = append(rich.Conditions, c)
			}
		}
	}
	return rich
}

// statusOf returns the part of an object's status that holds its conditions, as JSON values. It is nil if there is
// none. The rest of a typed object is not converted: it may be large, and a value that JSON cannot hold must not hide
// the conditions.
func statusOf(o olmcore.Object) map[string]any {
	if u, is := o.(*unstructured.Unstructured); is {
		status, _ := u.Object["status"].(map[string]any)
		return status
	}
	conditions := fieldOf(fieldOf(reflect.ValueOf(o), "Status"), "Conditions")
	if !conditions.IsValid() {
		return nil
	}
	status, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Conditions any `json:"conditions"`
	}{conditions.Interface()})
	return status
}

// fieldOf returns a field of a struct or of the struct that a pointer points to, or the zero Value if there is none.
func fieldOf(value reflect.Value, name string) reflect.Value {
	value = reflect.Indirect(value)
	if value.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	field, isThere := value.Type().FieldByName(name)
	if !isThere || !field.IsExported() {
		return reflect.Value{}
	}
	found, err := value.FieldByIndexErr(field.Index) // an error for a field of an embedded nil pointer
	if err != nil {
		return reflect.Value{}
	}
	return found
}

// timeOrNil returns a time with the precision of JSON, or nil for a zero time.
func timeOrNil(t *metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(olmcore.Timestamp(t.Time))
}

// Affected returns the keys of the Operator objects to reconcile after o was created, updated or deleted. If o is an
// Operator object, the result is the key of o. Otherwise, the result contains the key for each component label of o,
// sorted by name. After an update, call Affected with both the old and the new version of o.
func Affected(o olmcore.Object) []types.NamespacedName {
	key := olmcore.KeyOf(o) // the zero Key for a nil pointer of any type
	if key.Kind == "" {
		return nil
	}
	if key.Kind == "Operator" && key.Group == v1alpha1.GroupName {
		return []types.NamespacedName{{Name: key.Name}}
	}
	var keys []types.NamespacedName
	for _, label := range componentKeys(o.GetLabels()) {
		if name := strings.TrimPrefix(label, olmcore.ComponentLabelPrefix); name != "" {
			keys = append(keys, types.NamespacedName{Name: name})
		}
	}
	return keys
}

// These are the reasons of actions.
const (
	// ReasonLabelMissing means that an object of an operator lacks the operator's component label. The action adds the
	// label.
	ReasonLabelMissing = "ComponentLabelMissing"
	// ReasonLabelStale means that a Subscription has the component label of a package that it no longer names. The action
	// removes the label.
	ReasonLabelStale = "ComponentLabelStale"
	// ReasonOperatorMissing means that an object has a component label, but the Operator object for the label does not
	// exist. The action creates the Operator object.
	ReasonOperatorMissing = "OperatorMissing"
	// ReasonStatusObserved means that the status of an Operator object does not match the observed components. The action
	// updates the status.
	ReasonStatusObserved = "StatusObserved"
)

// These are the reasons of Diagnostics.
const (
	// ReasonLabelKeyInvalid means that the key of the component label is not valid, so the operator's objects are not
	// labelled. Use another name for the package, the namespace or the Operator object.
	ReasonLabelKeyInvalid = "LabelKeyInvalid"
	// ReasonOperatorNameInvalid means that the API server would reject the name of an Operator object, for example because
	// the name contains capital letters or underscores. No Operator object is created, but the operator itself works. Use
	// another package name.
	ReasonOperatorNameInvalid = "OperatorNameInvalid"
	// ReasonOperatorRefsCut means that the status of an Operator object cannot list all components or all their
	// conditions. Select the components by their label instead.
	ReasonOperatorRefsCut = "OperatorRefsCut"
)
