// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// visitedInput is an Input with a list of each form.
type visitedInput struct {
	Pods  olmcore.Observed[*corev1.Pod]
	Nodes olmcore.Observed[*corev1.Node]
	Names olmcore.Observed[string]
	Mixed olmcore.Observed[olmcore.Object]
}

func (in *visitedInput) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "Pods", &in.Pods, inputs.Required)
	inputs.VisitList(v, "Nodes", &in.Nodes, inputs.Optional)
	inputs.VisitValues(v, "Names", &in.Names, inputs.Optional)
	inputs.VisitObjects(v, "Mixed", &in.Mixed, inputs.Optional)
}

func (in *visitedInput) cover(c checkpoint.Coverage) checkpoint.Coverage {
	v := inputs.CoverLists(c)
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
			v := inputs.ValidateLists()
			in.lists(&v)
			if diff := cmp.Diff(test.want, v.Err()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListVisitNamesListsThatWereNotRead(t *testing.T) {
	in := visitedInput{Nodes: olmcore.Found[*corev1.Node]()}
	v := inputs.UnreadLists()
	in.lists(&v)
	require.Equal(t, []string{"Pods", "Names", "Mixed"}, v.Unread())
	require.NoError(t, v.Err())
}

func TestListVisitCoversEachList(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := completeInput()
	checkpoint := before.cover(inputs.NewCoverage(now, olmcore.Result{})).Checkpoint()
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
