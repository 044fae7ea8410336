// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// conditionEnabled and conditionDisabled are reasons of the condition DisabledCopiedCSVs, as OLM writes them.
const (
	conditionEnabled  = "CopiedCSVsEnabled"
	conditionDisabled = "CopiedCSVsDisabled"

	messagePresent = "Copied CSVs are enabled and present across the cluster"
	messageMissing = "Copied CSVs are enabled and at least one copied CSVs is missing"
	messageNone    = "Copied CSVs are disabled and no unexpected copied CSVs were found " +
		"for operators installed in AllNamespace mode"
	messageUnexpected = "Copied CSVs are disabled and at least one unexpected copied CSV was found " +
		"for an operator installed in AllNamespace mode"
)

const (
	// configPace is the time after which ReconcileConfig checks missing and unexpected copies again.
	configPace = 10 * time.Second
	// ConfigInterval is the interval at which a caller should reconcile if all copies are as the OLMConfig requires.
	ConfigInterval = time.Minute
)

// ReconcileConfig returns the update of the condition DisabledCopiedCSVs of the OLMConfig named cluster. For each
// operator that watches all namespaces, it compares the namespaces that have a copy with those that should have one. An
// OLMConfig with another name is reported and ignored. There is nothing to do if the Outcome contains only a Checkpoint
// or RequeueAfter. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go, syncOLMConfig.
// Differs: OLM compares the number of copies with the number of namespaces. This library compares the names of the
// namespaces.
func ReconcileConfig(in ConfigInput) (olmcore.Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) {
		return decideConfig(&in), nil
	})
}

func decideConfig(in *ConfigInput) olmcore.Result {
	lists := inputs.UnreadLists()
	in.lists(&lists)
	switch {
	case in.OLMConfig.DeletionTimestamp != nil:
		return olmcore.Result{}
	case in.OLMConfig.Name != model.OLMConfigName:
		return reportIgnored(in.OLMConfig)
	case len(lists.Unread()) > 0:
		return read.NotRead(lists.Unread(), olmcore.RefOf(in.OLMConfig), "",
			"the condition "+operatorsv1.DisabledCopiedCSVsConditionType+" stays as it is")
	}
	condition, isConverged := conditionOf(in)
	res := setCondition(in.OLMConfig, condition)
	if !isConverged {
		res.RequeueAfter = configPace
	}
	return res
}

// reportIgnored reports an OLMConfig that has no effect because of its name.
func reportIgnored(config *operatorsv1.OLMConfig) olmcore.Result {
	return olmcore.Result{Diagnostics: []olmcore.Diagnostic{
		olmcore.Diagnose(olmcore.Warning, ReasonNameIgnored, olmcore.RefOf(config), "metadata.name",
			"only the OLMConfig %s has an effect. Move the settings to it, and delete this one", model.OLMConfigName),
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
func conditionOf(in *ConfigInput) (c metav1.Condition, isConverged bool) {
	toggle := model.CopyToggleOf(in.OLMConfig, in.Config.ProtectedNamespaces)
	isMissing, isUnexpected := compareAll(in, toggle)
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: operatorsv1.DisabledCopiedCSVsConditionType, Status: status, Reason: reason, Message: message,
			LastTransitionTime: olmcore.Timestamp(in.Now),
		}
	}
	switch {
	case !toggle.Disabled && isMissing:
		return condition(metav1.ConditionFalse, conditionEnabled, messageMissing), false
	case !toggle.Disabled:
		return condition(metav1.ConditionFalse, conditionEnabled, messagePresent), true
	case isUnexpected:
		return condition(metav1.ConditionFalse, conditionDisabled, messageUnexpected), false
	}
	return condition(metav1.ConditionTrue, conditionDisabled, messageNone), true
}

// compareAll reports whether an operator that watches all namespaces lacks a copy, and whether one has a copy where
// none should exist.
func compareAll(in *ConfigInput, toggle model.CopyToggle) (isMissing, isUnexpected bool) {
	lacking := desiredCopies(in, toggle)
	staying := sets.New[string]()
	for _, n := range in.Namespaces.Items {
		if !model.IsTerminating(n) {
			staying.Insert(n.Name)
		}
	}
	for _, c := range in.ClusterServiceVersions.Items {
		key := model.OriginalKey(c)
		_, isGlobal := lacking[key]
		switch {
		case !isGlobal || !model.IsCopyOf(key, c) || !staying.Has(c.Namespace):
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
func desiredCopies(in *ConfigInput, toggle model.CopyToggle) map[types.NamespacedName]int {
	groups := map[string][]*operatorsv1.OperatorGroup{}
	for _, g := range in.OperatorGroups.Items {
		groups[g.Namespace] = append(groups[g.Namespace], g)
	}
	desired := map[types.NamespacedName]int{}
	for _, c := range in.ClusterServiceVersions.Items {
		g, _ := model.OnlyGroup(groups[c.Namespace], c.Namespace)
		targets, ok := model.CopyTargets(c, g)
		if ok && targets.All() {
			desired[model.OriginalKey(c)] = len(toggle.Namespaces(c.Namespace, targets, in.Namespaces.Items))
		}
	}
	return desired
}
