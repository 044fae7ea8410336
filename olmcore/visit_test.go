// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// visitedInput is an Input with a list of each form.
type visitedInput struct {
	Pods  olmcore.Observed[*corev1.Pod]
	Nodes olmcore.Observed[*corev1.Node]
	Names olmcore.Observed[string]
	Mixed olmcore.Observed[olmcore.Object]
}

func (in *visitedInput) lists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "Pods", &in.Pods, olmcore.Required)
	olmcore.VisitList(v, "Nodes", &in.Nodes, olmcore.Optional)
	olmcore.VisitValues(v, "Names", &in.Names, olmcore.Optional)
	olmcore.VisitObjects(v, "Mixed", &in.Mixed, olmcore.Optional)
}

func (in *visitedInput) cover(c olmcore.Coverage) olmcore.Coverage {
	v := olmcore.CoverLists(c)
	in.lists(&v)
	return v.Coverage()
}

func completeInput() visitedInput {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "1"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "2", ResourceVersion: "1"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "3", ResourceVersion: "1"}}
	return visitedInput{
		Pods: olmcore.Found(pod), Nodes: olmcore.Found(node), Names: olmcore.Found("x"), Mixed: olmcore.Found[olmcore.Object](pod, secret),
	}
}

func TestListVisitValidatesEachList(t *testing.T) {
	for name, test := range map[string]struct {
		change func(in *visitedInput)
		want   error
	}{
		"all lists were read": {change: func(*visitedInput) {}},
		"an optional list was not read": {change: func(in *visitedInput) {
			in.Nodes = olmcore.Observed[*corev1.Node]{}
		}},
		"a required list was not read": {
			change: func(in *visitedInput) { in.Pods = olmcore.Observed[*corev1.Pod]{} },
			want:   &olmcore.InputError{Field: "Pods", Problem: "were not read"},
		},
		"an object is nil": {
			change: func(in *visitedInput) { in.Nodes = olmcore.Found[*corev1.Node](nil) },
			want:   &olmcore.InputError{Field: "Nodes[0]", Problem: "is nil"},
		},
		"values of a read that was not completed": {
			change: func(in *visitedInput) { in.Names.Complete = false },
			want:   &olmcore.InputError{Field: "Names", Problem: "has items of a read that was not completed"},
		},
		"an object of several kinds is nil": {
			change: func(in *visitedInput) { in.Mixed.Items[1] = (*corev1.Pod)(nil) },
			want:   &olmcore.InputError{Field: "Mixed[1]", Problem: "is nil or has no kind"},
		},
		"an object of several kinds is repeated": {
			change: func(in *visitedInput) { in.Mixed.Items[1] = in.Mixed.Items[0] },
			want:   &olmcore.InputError{Field: "Mixed[1]", Problem: "repeats Pod a"},
		},
		"objects of several kinds of a read that was not completed": {
			change: func(in *visitedInput) { in.Mixed.Complete = false },
			want:   &olmcore.InputError{Field: "Mixed", Problem: "has items of a read that was not completed"},
		},
		"the first error is reported": {
			change: func(in *visitedInput) {
				in.Pods.Items[0].Name = ""
				in.Nodes.Items[0].Name = ""
			},
			want: &olmcore.InputError{Field: "Pods[0].metadata.name", Problem: "is empty"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := completeInput()
			test.change(&in)
			v := olmcore.ValidateLists()
			in.lists(&v)
			if diff := cmp.Diff(test.want, v.Err()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListVisitNamesListsThatWereNotRead(t *testing.T) {
	in := visitedInput{Nodes: olmcore.Found[*corev1.Node]()}
	v := olmcore.UnreadLists()
	in.lists(&v)
	require.Equal(t, []string{"Pods", "Names", "Mixed"}, v.Unread())
	require.NoError(t, v.Err())
}

func TestListVisitCoversEachList(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := completeInput()
	checkpoint := before.cover(olmcore.NewCoverage(now, olmcore.Result{})).Checkpoint()
	require.NotNil(t, checkpoint)
	for name, test := range map[string]struct {
		change func(in *visitedInput)
		same   bool
	}{
		"nothing changed":                  {change: func(*visitedInput) {}, same: true},
		"an object has changed":            {change: func(in *visitedInput) { in.Pods.Items[0].ResourceVersion = "2" }},
		"an object was deleted":            {change: func(in *visitedInput) { in.Nodes = olmcore.Found[*corev1.Node]() }},
		"a list was not read":              {change: func(in *visitedInput) { in.Nodes = olmcore.Observed[*corev1.Node]{} }},
		"a value has changed":              {change: func(in *visitedInput) { in.Names = olmcore.Found("y") }},
		"one of several kinds has changed": {change: func(in *visitedInput) { in.Mixed.Items[1].SetResourceVersion("2") }},
		"the values are not read":          {change: func(in *visitedInput) { in.Names = olmcore.Observed[string]{} }},
	} {
		t.Run(name, func(t *testing.T) {
			in := completeInput()
			test.change(&in)
			_, same := in.cover(checkpoint.Compare(now)).Holds()
			require.Equal(t, test.same, same)
		})
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { before.cover(checkpoint.Compare(now)) }))
}

func TestTheFirstRuleThatAppliesDecides(t *testing.T) {
	type light string
	type rule = olmcore.Rule[light, int, string]
	above := func(limit int, decision string) func(int) (string, bool) {
		return func(facts int) (string, bool) { return decision, facts > limit }
	}
	rules := []rule{
		{Name: "Stop", From: []light{"green"}, To: []light{"red"}, Decide: above(5, "stop")},
		{Name: "Slow", From: []light{"green", "red"}, To: []light{"amber", "red"}, Decide: above(2, "slow")},
		{Name: "Look", From: []light{"red"}, Decide: above(0, "look")},
	}
	type outcome struct{ decision, rule string }
	for name, test := range map[string]struct {
		state light
		facts int
		want  outcome
	}{
		"the first row":                    {"green", 6, outcome{"stop", "Stop"}},
		"a row that does not decide":       {"green", 3, outcome{"slow", "Slow"}},
		"a row that applies elsewhere":     {"red", 6, outcome{"slow", "Slow"}},
		"a row that changes no state":      {"red", 1, outcome{"look", "Look"}},
		"no row decides":                   {"green", 0, outcome{}},
		"no row applies in this state":     {"amber", 9, outcome{}},
		"no row applies in an empty state": {"", 9, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			decision, rule := olmcore.FirstDecision(rules, test.state, test.facts)
			require.Equal(t, test.want, outcome{decision, rule})
		})
	}
	require.Equal(t, olmcore.Graph[light]{
		{From: "green", To: "red", By: "Stop"},
		{From: "green", To: "amber", By: "Slow"},
		{From: "green", To: "red", By: "Slow"},
		{From: "red", To: "amber", By: "Slow"},
		{From: "red", To: "red", By: "Slow"},
	}, olmcore.GraphOf([]light{"green", "red"}, rules))
}
