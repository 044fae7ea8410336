// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// mirror makes a Pod for each ConfigMap and says so in its data; then it looks every minute until the data says "done".
func mirror(ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.LastResults) (res olmcore.Result, err error) {
	cm, err := olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return res, err
	}
	pod, err := olmcore.Get[*corev1.Pod](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return res, err
	}
	switch {
	case pod == nil:
		pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/app:v1"}}}}
		res.Actions = append(res.Actions, olmcore.CreateOf(pod, olmcore.Cause{Reason: "PodMissing"}))
	case cm.Data["ready"] == "" && pod.Status.Phase == corev1.PodRunning:
		after := cm.DeepCopy()
		after.Data = map[string]string{"ready": "yes"}
		res.Actions = append(res.Actions, olmcore.UpdateOf(cm, after, olmcore.Cause{Reason: "PodReady"}))
		res.Transitions = append(res.Transitions, olmcore.Transition{From: "CONNECTING", To: "READY", Reason: "PodReady", Certainty: olmcore.CertaintyObserved})
	case cm.Data["ready"] == "":
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnostic{Severity: olmcore.Warning, Reason: "PodNotReady", Message: "the Pod does not run"})
	case cm.Data["done"] == "":
		res.RequeueAfter = time.Minute
	}
	return res, nil
}

func config() scenario.Config {
	return scenario.Config{
		Controllers: []controller.Controller{{
			Name: "mirror", Kinds: []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}}, Reconcile: mirror,
		}},
		Commands: map[string]scenario.Command{
			"shout": func(_ *scenario.World, args []string, _ []byte) (string, error) {
				return strings.ToUpper(strings.Join(args, " ")), nil
			},
		},
	}
}

func TestScenarios(t *testing.T) {
	require.NoError(t, scenario.Run("testdata/cluster.txt", scenario.Config{}))
	require.NoError(t, scenario.Run("testdata/controllers.txt", config()))
	require.NoError(t, scenario.Run("testdata/webhooks.txt", scenario.Config{}))
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "story.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestADifferenceNamesFileAndLine(t *testing.T) {
	path := write(t, "# a story\n\nnow\n----\nnoon\n\nnow\n----\n2026-01-01T00:00:00Z\n")
	t.Setenv(scenario.UpdateVariable, "")
	err := scenario.Run(path, scenario.Config{})
	require.EqualError(t, err, path+":3: now\nwant:\n\tnoon\ngot:\n\t2026-01-01T00:00:00Z")
	require.ErrorContains(t, scenario.RunAll(filepath.Join(filepath.Dir(path), "*.txt"), scenario.Config{}), "noon")
}

func TestUpdateWritesTheExpectedParts(t *testing.T) {
	path := write(t, "# a story\n\n\nnow\n----\nnoon\n\n# Only a comment at the end.\n")
	t.Setenv(scenario.UpdateVariable, "1")
	require.NoError(t, scenario.Run(path, scenario.Config{}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# a story\n\n\nnow\n----\n2026-01-01T00:00:00Z\n\n# Only a comment at the end.\n", string(data))
	t.Setenv(scenario.UpdateVariable, "")
	require.NoError(t, scenario.Run(path, scenario.Config{}))
}

func TestBadFiles(t *testing.T) {
	t.Setenv(scenario.UpdateVariable, "")
	for text, want := range map[string]string{
		"now\n":                 ":1: no line ---- after the command",
		"----\nnothing\n":       ":1: ---- without a command above it",
		"now\n----\n\nlate now": ":4: no line ---- after the command",
	} {
		path := write(t, text)
		require.EqualError(t, scenario.Run(path, scenario.Config{}), path+want)
	}
	require.ErrorIs(t, scenario.Run("testdata/none.txt", scenario.Config{}), os.ErrNotExist)
	require.ErrorContains(t, scenario.RunAll("testdata/none*.txt", scenario.Config{}), "no scenario file matches")
	require.Error(t, scenario.RunAll("[", scenario.Config{}))
	boom := errors.New("boom")
	path := write(t, "now\n----\n")
	require.ErrorIs(t, scenario.Run(path, scenario.Config{Setup: func(*scenario.World) error { return boom }}), boom)
}

func FuzzScenario(f *testing.F) {
	f.Add("load nodes=a\nsettle\n----\n\nshow Node a\n----\n")
	f.Add("create\nkind: Pod\napiVersion: v1\n----\n")
	f.Add("edit Node a\n{}\n----\n")
	f.Add("now\n\f\v\u0085\n----\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "load") || strings.Contains(text, "create") || len(text) > 2000 {
			return
		}
		path := write(t, text)
		first := scenario.Run(path, scenario.Config{})
		second := scenario.Run(path, scenario.Config{})
		require.Equal(t, first == nil, second == nil)
	})
}
