// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

func configMap(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a", UID: "1", ResourceVersion: version}}
}

func TestEventsOfAReport(t *testing.T) {
	target := olmcore.RefOf(configMap("1"))
	blocked := olmcore.Diagnostic{Severity: olmcore.Warning, Reason: "Blocked", Message: "for 1s", Target: target}
	long := olmcore.Diagnostic{Severity: olmcore.Info, Reason: "Long", Message: strings.Repeat("ä", 1024) + "x", Target: target}
	result := olmcore.Result{
		Transitions: []olmcore.Transition{
			{Target: target, Type: "Phase", To: "Pending"},
			{Target: target, Type: "Phase", From: "Pending", To: "Done", Reason: "Ready", Message: "it is"},
		},
		Diagnostics: []olmcore.Diagnostic{blocked, long},
	}
	report := controller.Report{Controller: "c", Result: result, News: result.Diagnostics[:1]}
	regarding := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ops", Name: "a", UID: "1", ResourceVersion: "1"}
	event := func(kind, reason, note string) controllers.Event {
		return controllers.Event{Regarding: regarding, Type: kind, Reason: reason, Note: note}
	}
	require.Equal(t, []controllers.Event{
		event("Normal", "Pending", "Phase None -> Pending"),
		event("Normal", "Ready", "Phase Pending -> Done: it is"),
		event("Warning", "Blocked", "for 1s"),
	}, controllers.Events(report))
	require.Empty(
		t,
		controllers.Events(controller.Report{Result: olmcore.Result{Diagnostics: result.Diagnostics}}),
		"a Diagnostic that was reported before",
	)

	long.Message = "x" + long.Message // a character is cut in two
	cut := controllers.Events(controller.Report{News: []olmcore.Diagnostic{long}})[0]
	require.Equal(t, "Normal", cut.Type)
	require.True(t, utf8.ValidString(cut.Note))
	require.Len(t, cut.Note, 1023)
}

// TestEventsAboutANamespaceAreInIt checks that users who may read Events of their namespace alone see those about it.
func TestEventsAboutANamespaceAreInIt(t *testing.T) {
	regarding := func(target olmcore.Ref) corev1.ObjectReference {
		report := controller.Report{News: []olmcore.Diagnostic{{Reason: "R", Target: target}}}
		return controllers.Events(report)[0].Regarding
	}
	require.Equal(t, corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: "ops", Name: "ops"},
		regarding(olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: "ops"}))
	require.Equal(t, corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Namespace", Name: "ops"},
		regarding(olmcore.Ref{APIVersion: "example.com/v1", Kind: "Namespace", Name: "ops"}), "a kind of another group")
	require.Equal(t, corev1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "ops"},
		regarding(olmcore.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "ops"}))
}

// TestEventReasonsHaveOneLine checks that the reason of an Event has no line breaks, even if a tenant can write it.
func TestEventReasonsHaveOneLine(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n", "\v", "\f", "\x1c", "\u0085", "\u2028", "\u2029"} {
		forged := olmcore.Diagnostic{
			Severity: olmcore.Info,
			Reason:   "x" + end + "catalog olm/community: deleted",
			Target:   olmcore.RefOf(configMap("1")),
		}
		events := controllers.Events(controller.Report{News: []olmcore.Diagnostic{forged}})
		require.Len(t, events, 1)
		require.NotContains(t, events[0].Reason, end)
	}
}

// TestEventsOfASubscription checks that each stage of the InstallPlan has a reason of its own, and that a failure is a
// Warning.
func TestEventsOfASubscription(t *testing.T) {
	for _, tc := range []struct {
		transition olmcore.Transition
		want       string
	}{
		{
			olmcore.Transition{Type: "InstallPlan", To: "NotYetReconciled", Reason: "InstallPlanNotYetReconciled"},
			"Normal InstallPlanNotYetReconciled",
		},
		{
			olmcore.Transition{Type: "InstallPlan", To: "RequiresApproval", Reason: "RequiresApproval", Certainty: olmcore.CertaintyInferred},
			"Normal InstallPlanRequiresApproval",
		},
		{olmcore.Transition{Type: "InstallPlan", To: "RequiresApproval", Reason: "RequiresApproval", Certainty: olmcore.CertaintyAssumed}, ""},
		{olmcore.Transition{Type: "InstallPlan", To: "Installing", Reason: "Installing"}, "Normal InstallPlanInstalling"},
		{olmcore.Transition{Type: "InstallPlan", To: "Complete", Reason: "InstallPlanComplete"}, "Normal InstallPlanComplete"},
		{olmcore.Transition{Type: "InstallPlan", To: "Failed", Reason: "InstallComponentFailed"}, "Warning InstallPlanFailed"},
		{olmcore.Transition{Type: "InstallPlan", To: "Missing", Reason: "ReferencedInstallPlanNotFound"}, "Warning InstallPlanMissing"},
		{olmcore.Transition{Type: "InstallPlan", To: "NoPlan", Reason: "PlanReplaced"}, "Normal PlanReplaced"},
		{
			olmcore.Transition{Type: "ResolutionFailed", To: "True", Status: "True", Reason: "ConstraintsNotSatisfiable"},
			"Warning ConstraintsNotSatisfiable",
		},
		{olmcore.Transition{Type: "BundleUnpackFailed", To: "True", Status: "True", Reason: "BundleUnpackFailed"}, "Warning BundleUnpackFailed"},
		{
			olmcore.Transition{Type: "CatalogSourcesUnhealthy", To: "False", Status: "False", Reason: "AllCatalogSourcesHealthy"},
			"Normal AllCatalogSourcesHealthy",
		},
	} {
		got := ""
		for _, e := range controllers.Events(controller.Report{Result: olmcore.Result{Transitions: []olmcore.Transition{tc.transition}}}) {
			got = e.Type + " " + e.Reason
		}
		require.Equal(t, tc.want, got)
	}
}
