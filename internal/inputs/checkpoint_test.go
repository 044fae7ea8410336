// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// covered is an Input with one field for each Cover function.
type covered struct {
	pod        *corev1.Pod
	nodes      olmcore.Observed[*corev1.Node]
	objects    olmcore.Observed[olmcore.Object]
	name       string
	names      []string
	lastRun    olmcore.LastResults
	checkpoint *olmcore.Checkpoint
}

func (in *covered) cover(c checkpoint.Coverage) checkpoint.Coverage {
	checkpoint.CoverObject(&c, in.pod)
	checkpoint.CoverObjects(&c, in.nodes.Items, in.nodes.Complete)
	checkpoint.CoverObjects(&c, in.objects.Items, in.objects.Complete)
	checkpoint.CoverValue(&c, in.name)
	checkpoint.CoverValues(&c, in.names)
	checkpoint.CoverMap(&c, in.lastRun)
	return c
}

func (in *covered) holds(now time.Time) (time.Duration, bool) {
	return in.cover(in.checkpoint.Compare(now)).Holds()
}

func (in *covered) make(now time.Time, r olmcore.Result) *olmcore.Checkpoint {
	return in.cover(inputs.NewCoverage(now, r)).Checkpoint()
}

func identified(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"}
}

func sampleCovered() covered {
	return covered{
		pod:     &corev1.Pod{ObjectMeta: identified("pod")},
		nodes:   olmcore.Found(&corev1.Node{ObjectMeta: identified("a")}, &corev1.Node{ObjectMeta: identified("b")}),
		objects: olmcore.Found[olmcore.Object](&corev1.Secret{ObjectMeta: identified("secret")}),
		name:    "name", names: []string{"x", "y"},
		lastRun: olmcore.LastResults{{Kind: "Pod", Name: "pod"}: {Class: olmcore.Conflict}},
	}
}

func TestCheckpointLetsGoOfEveryChange(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, change := range map[string]func(in *covered){
		"an object that is gone": func(in *covered) { in.pod = nil },
		"another version": func(in *covered) {
			in.pod = &corev1.Pod{ObjectMeta: identified("pod")}
			in.pod.ResourceVersion = "2"
		},
		"another object of the same name": func(in *covered) { in.pod = &corev1.Pod{ObjectMeta: identified("pod")}; in.pod.UID = "2" },
		"an object without a version":     func(in *covered) { in.pod = &corev1.Pod{ObjectMeta: identified("pod")}; in.pod.ResourceVersion = "" },
		"a list that was not read":        func(in *covered) { in.nodes.Complete = false },
		"a list with one more": func(in *covered) {
			in.nodes = olmcore.Found(append(in.nodes.Items, &corev1.Node{ObjectMeta: identified("c")})...)
		},
		"a list with one less": func(in *covered) { in.nodes = olmcore.Found(in.nodes.Items[0]) },
		"a nil in a list":      func(in *covered) { in.nodes = olmcore.Found[*corev1.Node](nil, nil) },
		"an object that moved to the next": func(in *covered) {
			in.objects, in.nodes = olmcore.Found[olmcore.Object](), olmcore.Found(in.nodes.Items...)
		},
		"another value":                  func(in *covered) { in.name = "other" },
		"values in another order":        func(in *covered) { in.names = []string{"y", "x"} },
		"another result of the last run": func(in *covered) { in.lastRun = olmcore.LastResults{{Kind: "Pod", Name: "pod"}: {}} },
	} {
		t.Run(name, func(t *testing.T) {
			in := sampleCovered()
			in.checkpoint = in.make(now, olmcore.Result{})
			_, same := in.holds(now)
			require.True(t, same)
			change(&in)
			_, same = in.holds(now)
			require.False(t, same)
		})
	}
}

func TestCheckpointHoldsUntilTheDeadline(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := sampleCovered()
	in.checkpoint = in.make(now, olmcore.Result{RequeueAfter: time.Minute})
	for at, want := range map[time.Duration]time.Duration{
		0: time.Minute, 59 * time.Second: time.Second,
		time.Minute: -1, -time.Nanosecond: -1, time.Hour: -1,
	} {
		left, same := in.holds(now.Add(at))
		require.Equal(t, want >= 0, same, at)
		require.Equal(t, max(0, want), left, at)
	}
	in.checkpoint = in.make(now, olmcore.Result{})
	left, same := in.holds(now.Add(1000 * time.Hour))
	require.True(t, same)
	require.Zero(t, left)
}

func TestCheckpointIsMadeOfConvergedInputsAlone(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := sampleCovered()
	require.Nil(t, in.make(now, olmcore.Result{Diagnostics: make([]olmcore.Diagnostic, 1)}))
	require.Nil(t, in.make(now, olmcore.Result{Actions: make([]olmcore.Action, 1)}))
	in.pod.UID = ""
	require.Nil(t, in.make(now, olmcore.Result{}))
	var none *olmcore.Checkpoint
	c := none.Compare(now)
	_, same := c.Holds()
	require.False(t, same)
}

// TestCheckpointed: what is remembered is neither validated nor decided again, and costs nothing.
func TestCheckpointed(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	invalid, failed := errors.New("invalid"), errors.New("failed")
	says := olmcore.Result{Diagnostics: make([]olmcore.Diagnostic, 1)}
	waits := olmcore.Result{RequeueAfter: time.Minute}
	for name, tt := range map[string]struct {
		remembered       bool
		validate, decide error
		decided          olmcore.Result
		want             olmcore.Result
		wantErr          error
		checkpoint       bool
	}{
		"at rest":                     {decided: olmcore.Result{}, checkpoint: true},
		"at rest until a time":        {decided: waits, want: waits, checkpoint: true},
		"something is said":           {decided: says, want: says},
		"invalid":                     {validate: invalid, decide: failed, wantErr: invalid},
		"not decided":                 {decide: failed, decided: says, wantErr: failed},
		"remembered":                  {remembered: true, validate: invalid, decided: says, want: waits, checkpoint: true},
		"remembered of another Input": {decided: says, want: says},
	} {
		t.Run(name, func(t *testing.T) {
			in := sampleCovered()
			in.checkpoint = in.make(now, waits)
			if !tt.remembered {
				in.name = "changed"
			}
			reconcile := func() (olmcore.Outcome, error) {
				return inputs.Checkpointed(
					now,
					in.checkpoint,
					in.cover,
					func() error { return tt.validate },
					func() (olmcore.Result, error) { return tt.decided, tt.decide },
				)
			}
			out, err := reconcile()
			require.Equal(t, tt.wantErr, err)
			require.Equal(t, tt.want, out.Result)
			require.Equal(t, tt.checkpoint, out.Checkpoint != nil)
			if tt.remembered {
				require.Same(t, in.checkpoint, out.Checkpoint)
				require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = reconcile() }))
			}
		})
	}
}

func TestCheckpointComparesWithoutAllocations(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := sampleCovered()
	in.checkpoint = in.make(now, olmcore.Result{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, same := in.holds(now); !same {
			t.Error("does not hold")
		}
	}))
}
