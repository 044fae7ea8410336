// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"fmt"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/sample"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

const (
	ns       = sample.Namespace
	labelKey = sample.LabelKey
)

var (
	epoch, now                  = sample.Epoch, sample.Now
	second, secondp, epochPlus  = sample.Second, sample.Secondp, sample.EpochPlus
	newSub, newPlan, newCSV     = sample.Sub, sample.Plan, sample.CSV
	newCatalog, meta, refTo     = sample.Catalog, sample.Meta, sample.RefTo
	follows, installed, pending = sample.Follows, sample.Installed, sample.Pending
	withCondition, condition    = sample.WithCondition, sample.Condition
	manual, started             = sample.Manual, sample.Started
	done, failed, installedIs   = sample.Done, sample.Failed, sample.InstalledIs
	inputOf, answered           = sample.Input, sample.Answered
	resolutionOf, carryOut      = sample.ResolutionOf, sample.CarryOut
	vault, empty, leaving       = sample.Vault, sample.Empty, sample.Leaving
	reconcile, statusOf         = sample.Reconcile, sample.StatusOf
	healthOf, lookup            = sample.HealthOf, sample.Lookup
	reasons, words              = sample.Reasons, sample.Words
)

// failForward makes the namespace fail forward.
func failForward(in subscription.Input) subscription.Input {
	in.OperatorGroups.Items[0].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	return in
}

func gateOf(t require.TestingT, in subscription.Input) subscription.Gate { return assess(t, in).Gate }

func assess(t require.TestingT, in subscription.Input) subscription.Assessment {
	a, err := subscription.Assess(in)
	require.NoError(t, err)
	return a
}

// planConditions prints the InstallPlan conditions of a status.
func planConditions(s v1alpha1.SubscriptionStatus) string {
	var all []string
	for _, c := range s.Conditions {
		switch c.Type {
		case v1alpha1.SubscriptionInstallPlanMissing, v1alpha1.SubscriptionInstallPlanPending, v1alpha1.SubscriptionInstallPlanFailed:
			all = append(all, fmt.Sprintf("%s/%s", strings.TrimPrefix(string(c.Type), "InstallPlan"), c.Reason))
		}
	}
	return strings.Join(all, " ")
}

var short = map[string]string{
	"NoPlan": "-", "NotYetReconciled": "N", "Planning": "P", "RequiresApproval": "A", "Installing": "I",
	"Complete": "C", "Failed": "F", "Missing": "M", "Unknown": "U",
}

// stages prints the InstallPlan transitions of a result, one word each: from, to, the certainty unless Observed, "!"
// for out of band.
func stages(r olmcore.Result) string {
	var all []string
	for _, t := range r.Transitions {
		if t.Type != subscription.TransitionInstallPlan {
			continue
		}
		word := short[t.From] + ">" + short[t.To]
		if t.Certainty != olmcore.CertaintyObserved {
			word += ":" + string(t.Certainty)
		}
		if t.OutOfBand {
			word += "!"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// gaps prints the kinds of the gaps of a result.
func gaps(r olmcore.Result) string {
	var all []string
	for _, d := range r.Diagnostics {
		if d.Reason == olmcore.ReasonHistoryGap {
			kind, _, _ := strings.Cut(d.Message, ":")
			all = append(all, kind)
		}
	}
	return strings.Join(all, " ")
}
