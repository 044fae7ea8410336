// SPDX-License-Identifier: Apache-2.0

package olmconfig

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/copied"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// ConditionEnabled and ConditionDisabled are reasons of the condition DisabledCopiedCSVs, as OLM writes them.
const (
	ConditionEnabled  = "CopiedCSVsEnabled"
	ConditionDisabled = "CopiedCSVsDisabled"

	messagePresent    = "Copied CSVs are enabled and present across the cluster"
	messageMissing    = "Copied CSVs are enabled and at least one copied CSVs is missing"
	messageNone       = "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode"
	messageUnexpected = "Copied CSVs are disabled and at least one unexpected copied CSV was found " +
		"for an operator installed in AllNamespace mode"
)

// ReasonStatusChanged means that the condition of the OLMConfig is updated. Nothing to do.
const ReasonStatusChanged = "StatusChanged"

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list was not read, so the condition stays as it is. Give the caller access to the
	// kind in the message.
	ReasonNotObserved = read.ReasonNotObserved
	// ReasonNameIgnored means that an OLMConfig has another name than cluster, so the OLMConfig has no effect. Move its
	// settings to the OLMConfig named cluster, and delete the other one.
	ReasonNameIgnored = "NameIgnored"
)

const (
	// CopiesPace is the time after which Reconcile checks missing and unexpected copies again.
	CopiesPace = 10 * time.Second
	// LookAgain is the interval at which a caller should reconcile if all copies are as the OLMConfig requires.
	LookAgain = time.Minute
)

// Reconcile returns the update of the condition DisabledCopiedCSVs of the OLMConfig named cluster. For each operator
// that watches all namespaces, it compares the namespaces that have a copy with those that should have one. An
// OLMConfig with another name is reported and ignored. There is nothing to do if the Outcome contains only a Checkpoint
// or RequeueAfter. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go, syncOLMConfig.
// Differs: OLM compares the number of copies with the number of namespaces. This library compares the names of the
// namespaces.
func Reconcile(in Input) (Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(&in), nil })
}

func decide(in *Input) olmcore.Result {
	lists := inputs.UnreadLists()
	in.lists(&lists)
	switch {
	case in.OLMConfig.DeletionTimestamp != nil:
		return olmcore.Result{}
	case in.OLMConfig.Name != copied.ConfigName:
		return reportIgnored(in.OLMConfig)
	case len(lists.Unread()) > 0:
		return read.NotRead(lists.Unread(), olmcore.RefOf(in.OLMConfig), "",
			"the condition "+operatorsv1.DisabledCopiedCSVsConditionType+" stays as it is")
	}
	condition, isConverged := conditionOf(in)
	res := setCondition(in.OLMConfig, condition)
	if !isConverged {
		res.RequeueAfter = CopiesPace
	}
	return res
}

// reportIgnored reports an OLMConfig that has no effect because of its name.
func reportIgnored(config *operatorsv1.OLMConfig) olmcore.Result {
	return olmcore.Result{Diagnostics: []olmcore.Diagnostic{
		olmcore.Diagnose(olmcore.Warning, ReasonNameIgnored, olmcore.RefOf(config), "metadata.name",
			"only the OLMConfig %s has an effect. Move the settings to it, and delete this one", copied.ConfigName),
	}}
}

// setCondition returns the status update that sets a condition, or an empty Result if the status does not change.
func setCondition(config *operatorsv1.OLMConfig, condition metav1.Condition) olmcore.Result {
	after := *config // a status update writes nothing else, so the rest is shared with the observed object
	after.Status.Conditions = slices.Clone(config.Status.Conditions)
	meta.SetStatusCondition(&after.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(after.Status, config.Status) {
		return olmcore.Result{}
	}
	cause := olmcore.Cause{Reason: ReasonStatusChanged, Message: condition.Message}
	return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateStatusOf(config, &after, cause)}}
}

// conditionOf returns the condition, and whether every copy exists that should exist, and no other.
func conditionOf(in *Input) (c metav1.Condition, isConverged bool) {
	toggle := copied.ToggleOf(in.OLMConfig, in.Config.ProtectedNamespaces)
	isMissing, isUnexpected := compare(in, toggle)
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: operatorsv1.DisabledCopiedCSVsConditionType, Status: status, Reason: reason, Message: message,
			LastTransitionTime: olmcore.Timestamp(in.Now),
		}
	}
	switch {
	case !toggle.Disabled && isMissing:
		return condition(metav1.ConditionFalse, ConditionEnabled, messageMissing), false
	case !toggle.Disabled:
		return condition(metav1.ConditionFalse, ConditionEnabled, messagePresent), true
	case isUnexpected:
		return condition(metav1.ConditionFalse, ConditionDisabled, messageUnexpected), false
	}
	return condition(metav1.ConditionTrue, ConditionDisabled, messageNone), true
}

// compare reports whether an operator that watches all namespaces lacks a copy, and whether one has a copy where none
// should exist.
func compare(in *Input, toggle copied.Toggle) (isMissing, isUnexpected bool) {
	lacking := desiredCopies(in, toggle)
	staying := sets.New[string]()
	for _, n := range in.Namespaces.Items {
		if !copied.IsLeaving(n) {
			staying.Insert(n.Name)
		}
	}
	for _, c := range in.ClusterServiceVersions.Items {
		key := copied.Home(c)
		_, isGlobal := lacking[key]
		switch {
		case !isGlobal || !copied.From(key, c) || !staying.Has(c.Namespace):
		case toggle.Keeps(true, c.Namespace):
			lacking[key]--
		default:
			isUnexpected = true
		}
	}
	for _, n := range lacking {
		isMissing = isMissing || n > 0
	}
	return isMissing, isUnexpected
}

// desiredCopies returns the number of copies that each operator that watches all namespaces should have.
func desiredCopies(in *Input, toggle copied.Toggle) map[types.NamespacedName]int {
	groups := map[string][]*operatorsv1.OperatorGroup{}
	for _, g := range in.OperatorGroups.Items {
		groups[g.Namespace] = append(groups[g.Namespace], g)
	}
	desired := map[types.NamespacedName]int{}
	for _, c := range in.ClusterServiceVersions.Items {
		g, _ := group.Alone(groups[c.Namespace], c.Namespace)
		targets, ok := copied.Targets(c, g)
		if ok && targets.All() {
			desired[copied.Home(c)] = len(toggle.Namespaces(c.Namespace, targets, in.Namespaces.Items))
		}
	}
	return desired
}
