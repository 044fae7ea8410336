// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

func TestReportPrintsActionsNewsAndErrors(t *testing.T) {
	target := olmcore.RefOf(configMap("1"))
	blocked := olmcore.Diagnostic{Severity: olmcore.Warning, Reason: "Blocked", Message: "for 1s", Target: target}
	result := olmcore.Result{
		Actions:     []olmcore.Action{update},
		Transitions: []olmcore.Transition{{Target: target, Type: "Phase", To: "Pending"}},
		Diagnostics: []olmcore.Diagnostic{blocked, {Severity: olmcore.Info, Reason: "Known", Target: target}},
	}
	report := controller.Report{Controller: "c", Key: aKey, Result: result, News: result.Diagnostics[:1], Err: errors.New("no")}
	require.Equal(t, "c ops/k: update ConfigMap ops/a (Test)\nc ops/k: Warning Blocked: for 1s\nc ops/k: no\n", report.String())
	known := controller.Report{Result: olmcore.Result{Diagnostics: result.Diagnostics}}
	require.Empty(t, known.String(), "Diagnostics that were reported before")
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
		for name, report := range map[string]controller.Report{
			"a field in a Diagnostic":    {News: diagnostic(forged)},
			"the name of a target":       {Result: olmcore.Result{Actions: []olmcore.Action{named}}},
			"an error of the API server": {Err: errors.New(forged)},
		} {
			report.Controller, report.Key = "catalog", key
			line, isLine := strings.CutSuffix(report.String(), "\n")
			require.True(t, isLine, name)
			require.True(t, strings.HasPrefix(line, "catalog evil/cat: "), "%s: %q", name, line)
			for _, r := range line {
				require.True(t, r == ' ' || unicode.IsGraphic(r), "%s: %q", name, line)
			}
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
			shown := controller.Report{Controller: "c", Key: aKey, Err: test.err}.String()
			require.Equal(t, test.isShown, shown != "", shown)
		})
	}
}
