// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

func TestAReportInWords(t *testing.T) {
	target := olmcore.RefOf(configMap("1"))
	blocked := olmcore.Diagnostic{Severity: olmcore.Warning, Reason: "Blocked", Message: "for 1s", Target: target}
	long := olmcore.Diagnostic{Severity: olmcore.Info, Reason: "Long", Message: strings.Repeat("ä", 1024) + "x", Target: target}
	result := olmcore.Result{
		Actions: []olmcore.Action{update},
		Transitions: []olmcore.Transition{
			{Target: target, Type: "Phase", To: "Pending"},
			{Target: target, Type: "Phase", From: "Pending", To: "Done", Reason: "Ready", Message: "it is"},
		},
		Diagnostics: []olmcore.Diagnostic{blocked, long},
	}
	report := controllers.Report{Controller: "c", Key: aKey, Result: result, News: result.Diagnostics[:1], Err: errors.New("no")}
	require.Equal(t, "c ops/k: update ConfigMap ops/a (Test)\nc ops/k: Warning Blocked: for 1s\nc ops/k: no\n", report.String())
	require.Empty(t, controllers.Report{Result: olmcore.Result{Diagnostics: result.Diagnostics}}.String(), "what was said before")

	regarding := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ops", Name: "a", UID: "1", ResourceVersion: "1"}
	event := func(kind, reason, note string) controllers.Event {
		return controllers.Event{Regarding: regarding, Type: kind, Reason: reason, Note: note}
	}
	require.Equal(t, []controllers.Event{
		event("Normal", "Pending", "Phase None -> Pending"),
		event("Normal", "Ready", "Phase Pending -> Done: it is"),
		event("Warning", "Blocked", "for 1s"),
	}, report.Events())
	require.Empty(t, controllers.Report{Result: olmcore.Result{Diagnostics: result.Diagnostics}}.Events(), "what was said before")

	long.Message = "x" + long.Message // a character is cut in two
	cut := controllers.Report{News: []olmcore.Diagnostic{long}}.Events()[0]
	require.Equal(t, "Normal", cut.Type)
	require.True(t, utf8.ValidString(cut.Note))
	require.Len(t, cut.Note, 1023)
}

// TestEventsAboutANamespaceAreInIt checks that users who may read Events of their namespace alone see those about it.
func TestEventsAboutANamespaceAreInIt(t *testing.T) {
	regarding := func(target olmcore.Ref) corev1.ObjectReference {
		report := controllers.Report{News: []olmcore.Diagnostic{{Reason: "R", Target: target}}}
		return report.Events()[0].Regarding
	}
	require.Equal(t, corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: "ops", Name: "ops"},
		regarding(olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: "ops"}))
	require.Equal(t, corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Namespace", Name: "ops"},
		regarding(olmcore.Ref{APIVersion: "example.com/v1", Kind: "Namespace", Name: "ops"}), "a kind of another group")
	require.Equal(t, corev1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "ops"},
		regarding(olmcore.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "ops"}))
}

// TestATextOfATenantForgesNoLineOfTheLog checks that each action, Diagnostic and error of a Report has one line,
// whatever a tenant wrote into a field, a name or a message.
func TestATextOfATenantForgesNoLineOfTheLog(t *testing.T) {
	target := olmcore.RefOf(configMap("1"))
	diagnostic := func(message string) []olmcore.Diagnostic {
		return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Error, "SpecInvalid", target, "spec.sourceType", "unknown sourcetype: %s", message)}
	}
	named := olmcore.Delete{Target: target}
	for _, end := range []string{"\n", "\r", "\r\n", "\v", "\f", "\x1c", "\u0085", "\u2028", "\u2029"} {
		forged := "x" + end + "catalog olm/community: delete Pod olm/community-x (NodeLost)"
		named.Target.Name = forged
		named.Cause = olmcore.Cause{Reason: forged}
		key := types.NamespacedName{Namespace: "evil", Name: "cat"}
		for name, report := range map[string]controllers.Report{
			"a field in a Diagnostic":    {News: diagnostic(forged)},
			"the name of a target":       {Result: olmcore.Result{Actions: []olmcore.Action{named}}},
			"an error of the API server": {Err: errors.New(forged)},
		} {
			report.Controller, report.Key = controllers.Catalog, key
			line, isLine := strings.CutSuffix(report.String(), "\n")
			require.True(t, isLine, name)
			require.True(t, strings.HasPrefix(line, "catalog evil/cat: "), "%s: %q", name, line)
			for _, r := range line {
				require.True(t, r == ' ' || unicode.IsGraphic(r), "%s: %q", name, line)
			}
		}
		for _, e := range (controllers.Report{News: []olmcore.Diagnostic{{Severity: olmcore.Info, Reason: forged, Target: target}}}).Events() {
			require.NotContains(t, e.Reason, end)
		}
	}
}

// TestAReportShowsNoExpectedError checks which failed writes a Report prints: the same that Run returns as an error.
func TestAReportShowsNoExpectedError(t *testing.T) {
	failed := func(err error) error { return &olmcore.ActionError{Action: update, Err: err} }
	configMaps := schema.GroupResource{Resource: "configmaps"}
	gone, forbidden := failed(apierrors.NewNotFound(configMaps, "a")), failed(apierrors.NewForbidden(configMaps, "a", errors.New("no rule")))
	stale := failed(fmt.Errorf("%w: %w", olmcore.ErrStale, apierrors.NewConflict(configMaps, "a", errors.New("changed"))))
	stopped := failed(fmt.Errorf("not run: %w", context.Canceled))
	for name, test := range map[string]struct {
		err     error
		isShown bool
	}{
		"nothing failed":                           {nil, false},
		"an object that is gone":                   {gone, false},
		"a conflict":                               {stale, false},
		"the end of the program":                   {stopped, false},
		"all of these":                             {errors.Join(gone, stopped, stale), false},
		"a missing permission":                     {forbidden, true},
		"a missing permission and then a conflict": {errors.Join(forbidden, stale), true},
		"a timeout":                                {failed(context.DeadlineExceeded), true},
	} {
		t.Run(name, func(t *testing.T) {
			shown := controllers.Report{Controller: "c", Key: aKey, Err: test.err}.String()
			require.Equal(t, test.isShown, shown != "", shown)
		})
	}
}

// TestEventsOfASubscription: the stages of its plan have reasons of their own, and what went wrong is a Warning.
func TestEventsOfASubscription(t *testing.T) {
	for _, tc := range []struct {
		transition olmcore.Transition
		want       string
	}{
		{olmcore.Transition{Type: "InstallPlan", To: "NotYetReconciled", Reason: "InstallPlanNotYetReconciled"}, "Normal InstallPlanNotYetReconciled"},
		{olmcore.Transition{Type: "InstallPlan", To: "RequiresApproval", Reason: "RequiresApproval", Certainty: olmcore.CertaintyInferred}, "Normal InstallPlanRequiresApproval"},
		{olmcore.Transition{Type: "InstallPlan", To: "RequiresApproval", Reason: "RequiresApproval", Certainty: olmcore.CertaintyAssumed}, ""},
		{olmcore.Transition{Type: "InstallPlan", To: "Installing", Reason: "Installing"}, "Normal InstallPlanInstalling"},
		{olmcore.Transition{Type: "InstallPlan", To: "Complete", Reason: "InstallPlanComplete"}, "Normal InstallPlanComplete"},
		{olmcore.Transition{Type: "InstallPlan", To: "Failed", Reason: "InstallComponentFailed"}, "Warning InstallPlanFailed"},
		{olmcore.Transition{Type: "InstallPlan", To: "Missing", Reason: "ReferencedInstallPlanNotFound"}, "Warning InstallPlanMissing"},
		{olmcore.Transition{Type: "InstallPlan", To: "NoPlan", Reason: "PlanReplaced"}, "Normal PlanReplaced"},
		{olmcore.Transition{Type: "ResolutionFailed", To: "True", Status: "True", Reason: "ConstraintsNotSatisfiable"}, "Warning ConstraintsNotSatisfiable"},
		{olmcore.Transition{Type: "BundleUnpackFailed", To: "True", Status: "True", Reason: "BundleUnpackFailed"}, "Warning BundleUnpackFailed"},
		{olmcore.Transition{Type: "CatalogSourcesUnhealthy", To: "False", Status: "False", Reason: "AllCatalogSourcesHealthy"}, "Normal AllCatalogSourcesHealthy"},
	} {
		got := ""
		for _, e := range (controllers.Report{Result: olmcore.Result{Transitions: []olmcore.Transition{tc.transition}}}).Events() {
			got = e.Type + " " + e.Reason
		}
		require.Equal(t, tc.want, got)
	}
}
