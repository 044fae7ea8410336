// SPDX-License-Identifier: Apache-2.0

package olmconfig

import (
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/copied"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/olmcore"
)

// ConditionEnabled and ConditionDisabled are reasons of the condition DisabledCopiedCSVs, as OLM writes them.
const (
	ConditionEnabled  = "CopiedCSVsEnabled"
	ConditionDisabled = "CopiedCSVsDisabled"

	messagePresent    = "Copied CSVs are enabled and present across the cluster"
	messageMissing    = "Copied CSVs are enabled and at least one copied CSVs is missing"
	messageNone       = "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode"
	messageUnexpected = "Copied CSVs are disabled and at least one unexpected copied CSV was found for an operator installed in AllNamespace mode"
)

// ReasonStatusChanged means that the condition of the OLMConfig is updated. Nothing to do.
const ReasonStatusChanged = "StatusChanged"

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list was not read, so the condition stays as it is. Give the caller access to the
	// kind in the message.
	ReasonNotObserved = "NotObserved"
	// ReasonNameIgnored means that an OLMConfig has another name than cluster, so it has no effect. Delete it, and move
	// its settings to the OLMConfig named cluster.
	ReasonNameIgnored = "NameIgnored"
)

const (
	// CopiesPace is the time until Reconcile checks again copies that are missing or unexpected.
	CopiesPace = 10 * time.Second
	// LookAgain is the interval at which a caller should reconcile if all copies are as the OLMConfig requires.
	LookAgain = time.Minute
	// unreadPace is the time after which lists that were not read are requested again.
	unreadPace = 5 * time.Second
)

// Reconcile returns the update of the condition DisabledCopiedCSVs of the OLMConfig named cluster. For each operator
// that watches all namespaces, it compares the namespaces that have a copy with those that should have one. An
// OLMConfig with another name is reported and ignored. There is nothing to do if the Outcome contains only a Checkpoint
// or RequeueAfter. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go, syncOLMConfig.
// Differs: sets of namespaces are compared, not their numbers.
func Reconcile(in Input) (Outcome, error) {
	return olmcore.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(&in), nil })
}

func decide(in *Input) (res olmcore.Result) {
	say := func(reason, path, format string, args ...any) {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, reason, olmcore.RefOf(in.OLMConfig), path, format, args...))
	}
	lists := olmcore.UnreadLists()
	in.lists(&lists)
	unread := lists.Unread()
	switch {
	case in.OLMConfig.DeletionTimestamp != nil:
		return res
	case in.OLMConfig.Name != copied.ConfigName:
		say(ReasonNameIgnored, "metadata.name", "the OLMConfig that counts has the name %s", copied.ConfigName)
		return res
	case len(unread) > 0:
		say(ReasonNotObserved, "", "the condition %s stays as it is, as these lists were not read: %s", operatorsv1.DisabledCopiedCSVsConditionType, strings.Join(unread, ", "))
		res.Requeue(unreadPace)
		return res
	}
	condition, isConverged := conditionOf(in)
	if !isConverged {
		res.Requeue(CopiesPace)
	}
	after := *in.OLMConfig // what a status update does not write is shared with what was observed
	after.Status.Conditions = slices.Clone(in.OLMConfig.Status.Conditions)
	meta.SetStatusCondition(&after.Status.Conditions, condition)
	if !equality.Semantic.DeepEqual(after.Status, in.OLMConfig.Status) {
		res.Actions = []olmcore.Action{olmcore.UpdateStatusOf(in.OLMConfig, &after, olmcore.Cause{Reason: ReasonStatusChanged, Message: condition.Message})}
	}
	return res
}

// conditionOf returns the condition, and whether every copy exists that should exist, and no other.
func conditionOf(in *Input) (c metav1.Condition, isConverged bool) {
	toggle := copied.ToggleOf(in.OLMConfig, in.Config.ProtectedNamespaces)
	missing, unexpected := compare(in, toggle)
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: operatorsv1.DisabledCopiedCSVsConditionType, Status: status, Reason: reason, Message: message,
			LastTransitionTime: olmcore.Timestamp(in.Now),
		}
	}
	switch {
	case !toggle.Disabled && missing:
		return condition(metav1.ConditionFalse, ConditionEnabled, messageMissing), false
	case !toggle.Disabled:
		return condition(metav1.ConditionFalse, ConditionEnabled, messagePresent), true
	case unexpected:
		return condition(metav1.ConditionFalse, ConditionDisabled, messageUnexpected), false
	}
	return condition(metav1.ConditionTrue, ConditionDisabled, messageNone), true
}

// compare returns whether an operator that watches all namespaces lacks a copy, and whether one has a copy where none
// shall be.
func compare(in *Input, toggle copied.Toggle) (missing, unexpected bool) {
	groups := map[string][]*operatorsv1.OperatorGroup{}
	for _, g := range in.OperatorGroups.Items {
		groups[g.Namespace] = append(groups[g.Namespace], g)
	}
	staying := sets.New[string]()
	for _, n := range in.Namespaces.Items {
		if !copied.IsLeaving(n) {
			staying.Insert(n.Name)
		}
	}
	// How many copies each operator shall have, less those that it has.
	lacking := map[types.NamespacedName]int{}
	for _, c := range in.ClusterServiceVersions.Items {
		g, _ := group.Alone(groups[c.Namespace], c.Namespace)
		targets, ok := copied.Targets(c, g)
		if ok && targets.All() {
			lacking[copied.Home(c)] = len(toggle.Namespaces(c.Namespace, targets, in.Namespaces.Items))
		}
	}
	for _, c := range in.ClusterServiceVersions.Items {
		key := copied.Home(c)
		_, global := lacking[key]
		if !global || !copied.From(key, c) || !staying.Has(c.Namespace) {
			continue
		}
		if !toggle.Keeps(true, c.Namespace) {
			unexpected = true
			continue
		}
		lacking[key]--
	}
	for _, n := range lacking {
		missing = missing || n > 0
	}
	return missing, unexpected
}
