// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestNoDecisionDependsOnTheWordingOfAMessage checks the law of checkMessages for the cases of the other tests.
// TestCatalogServesAgainAfterAnyFailure checks it in random worlds.
func TestNoDecisionDependsOnTheWordingOfAMessage(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		base := converged(t, catalog.Config{Replicas: replicas}, cool())
		for _, change := range everyCase() {
			in := invariant.Clone(base)
			change(&in)
			checkMessages(t, in)
			checkMessages(t, recorded(t, in))
			// A client that has just changed, and no client, report no failure of their own.
			in = withStatusWritten(t, in)
			if in.Connection != nil {
				in.Connection.LastTransition = in.Now
			}
			checkMessages(t, in)
			in.Connection = nil
			checkMessages(t, in)
		}
	}
}

// TestRecordedMessagesStayWithinTheLimit checks that messages of another client never lead to a status that the API
// server rejects. The messages have the maximum length and contain characters that are escaped.
func TestRecordedMessagesStayWithinTheLimit(t *testing.T) {
	const limit = 32768 // of the message of a condition, in the CustomResourceDefinition
	base := converged(t, catalog.Config{}, cool())
	for _, change := range everyCase() {
		in := invariant.Clone(base)
		change(&in)
		in = withStatusWritten(t, in)
		for i := range in.CatalogSource.Status.Conditions {
			in.CatalogSource.Status.Conditions[i].Message = strings.Repeat("\u200b", limit)
		}
		for _, c := range withStatusWritten(t, in).CatalogSource.Status.Conditions {
			require.LessOrEqual(t, utf8.RuneCountInString(c.Message), limit, c.Type)
		}
	}
}

// TestARejectionStaysWithItsFirstMessage checks that the recorded message of a rejected Pod is only replaced after the
// next attempt, because every answer of the API server may have a different text.
func TestARejectionStaysWithItsFirstMessage(t *testing.T) {
	in := converged(t, catalog.Config{}, cool())
	in.Pods.Items = nil
	reject := func(answer string, at time.Time) {
		key := olmcore.Key{Kind: "Pod", Namespace: "olm", Name: "cool-w4nrrin4qx"}
		in.LastRun = olmcore.LastResults{key: {Class: olmcore.Forbidden, Message: answer, Count: 1, First: at, Last: at}}
	}
	for _, test := range []struct {
		answer string
		after  time.Duration
		want   string
	}{
		{"request 1 exceeds the quota", 0, "request 1 exceeds the quota"},
		{"request 2 exceeds the quota", 0, "request 1 exceeds the quota"},
		{"request 2 exceeds the quota", time.Hour, "request 2 exceeds the quota"},
	} {
		reject(test.answer, in.Now)
		in.Now = in.Now.Add(test.after)
		in = withStatusWritten(t, in)
		require.Contains(t, conditionOf(in, catalog.ConditionProgressing).Message, test.want)
		require.Contains(t, conditionOf(in, catalog.ConditionDegraded).Message, test.want)
	}
}

// checkMessages checks that a decision does not depend on the messages in the recorded status.
func checkMessages(t require.TestingT, in catalog.Input) {
	published := withStatusWritten(t, in)
	want := decisionOf(t, published)
	for _, message := range []string{"reworded", ""} {
		reworded := invariant.Clone(published)
		status := &reworded.CatalogSource.Status
		status.Message = message
		for i := range status.Conditions {
			status.Conditions[i].Message = message
		}
		// The next reconcile may write messages, but nothing else.
		require.Equal(t, want, decisionOf(t, withStatusWritten(t, reworded)))
	}
}

// withStatusWritten returns an input after the status that Reconcile returns was written.
func withStatusWritten(t require.TestingT, in catalog.Input) catalog.Input {
	after := invariant.Clone(in)
	if written, found := olmcore.StatusOf[*v1alpha1.CatalogSource](answer(t, in).Actions); found {
		after.CatalogSource = written
	}
	return after
}

// decision is a decision without messages of conditions.
type decision struct {
	actions    []string
	requeue    time.Duration
	connection catalog.ConnectionRequest
	notify     catalog.Notify
	state      catalog.State
	pods       []catalog.PodReport
	conditions []metav1.Condition
	waitingFor string
	deadline   time.Time
}

func decisionOf(t require.TestingT, in catalog.Input) decision {
	out := answer(t, in)
	a := catalog.Assess(in)
	d := decision{
		requeue: out.RequeueAfter, connection: out.Connection, notify: out.Notify,
		state: a.State, pods: a.Pods, waitingFor: a.WaitingFor, deadline: a.NextDeadline,
	}
	for _, action := range out.Actions {
		verb, target, cause := action.Describe()
		d.actions = append(d.actions, string(verb)+" "+target.String()+" "+cause.Reason)
	}
	for _, c := range a.Conditions {
		c.Message = ""
		d.conditions = append(d.conditions, c)
	}
	return d
}

func conditionOf(in catalog.Input, kind string) metav1.Condition {
	for _, c := range in.CatalogSource.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
