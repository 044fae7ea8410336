// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// withSettings adds a ConfigMap of one name to the versions of alpha. Its data is the number of the version.
func (w *world) withSettings(versions int) {
	w.bundles = map[string][]olmcore.Object{}
	for v := 1; v <= versions; v++ {
		settings := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"version": strconv.Itoa(v)},
		}
		w.bundles[csvName("alpha", v)] = append(slices.Clone(bundle("alpha", v)), settings)
	}
}

func (w *world) settings() string {
	cm := fake.Find[*corev1.ConfigMap](w.cluster, namespace, "settings")
	if cm == nil {
		return ""
	}
	return cm.Data["version"]
}

// TestOlderPlanDoesNotOverwriteTheNewerOne: the API server rejects a step of alpha's first plan for some minutes.
// Meanwhile v2 is published. Whenever the first plan goes on, the content of v2 is never replaced by that of v1.
func TestOlderPlanDoesNotOverwriteTheNewerOne(t *testing.T) {
	reasons := map[string]func(olmcore.Ref) error{
		"by a webhook":    func(olmcore.Ref) error { return apierrors.NewInternalError(errors.New("failed calling webhook")) },
		"as invalid":      invalid,
		"as forbidden":    forbidden("no"),
		"as a stale read": func(o olmcore.Ref) error { return apierrors.NewConflict(corev1.Resource("configmaps"), o.Name, nil) },
	}
	for name, refuse := range reasons {
		for _, minutes := range []time.Duration{3, 12, 25} {
			t.Run(name+" for "+(minutes*time.Minute).String(), func(t *testing.T) {
				w := newWorld(t)
				w.withSettings(2)
				rejected := true
				w.cluster.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
					if rejected && target.Kind == "ConfigMap" && target.Name == "settings" {
						return refuse(target)
					}
					return nil
				}
				require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
				w.run(t, time.Minute)
				w.heads["alpha"] = 2
				w.olm.CatalogsChanged()
				w.run(t, minutes*time.Minute)
				rejected = false
				for highest := ""; w.cluster.Now().Before(noon.Add(2 * time.Hour)); {
					w.run(t, 10*time.Second)
					require.GreaterOrEqual(t, w.settings(), highest)
					highest = w.settings()
				}
				require.Equal(t, "2", w.settings())
				require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())
				w.requireInstalled(t, "alpha")
			})
		}
	}
}

// TestVersionThatSkipsAPlannedOneIsInstalledAlone: the plan of alpha and beta waits for its approval. Then a version of
// alpha is published that skips the planned one, or the planned one is withdrawn. Whatever is approved, alpha ends with
// one version.
func TestVersionThatSkipsAPlannedOneIsInstalledAlone(t *testing.T) {
	one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
	two := resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name}
	three := resolution.ChannelEntry{Name: csvName("alpha", 3), Replaces: one.Name, Skips: []string{two.Name}}
	betas := []resolution.ChannelEntry{{Name: csvName("beta", 1)}, {Name: csvName("beta", 2), Replaces: csvName("beta", 1)}}
	for name, later := range map[string][]resolution.ChannelEntry{"skipped": {one, two, three}, "withdrawn": {one}} {
		for _, approves := range []string{"before", "after", "both"} {
			t.Run(name+", approved "+approves, func(t *testing.T) {
				w, packages := newWorld(t), map[string]resolution.Package{}
				w.offer(t, packages, "beta", betas[0])
				w.offer(t, packages, "alpha", one)
				for _, pkg := range []string{"alpha", "beta"} {
					require.NoError(t, w.subscribe(pkg, v1alpha1.ApprovalManual))
				}
				w.run(t, time.Minute)
				require.NoError(t, w.approveAll())
				w.run(t, time.Minute)
				w.offer(t, packages, "beta", betas...)
				w.offer(t, packages, "alpha", one, two)
				w.poke(t)
				w.planOf(t, two.Name, csvName("beta", 2))

				if approves != "after" {
					require.NoError(t, w.approveAll())
				}
				w.offer(t, packages, "alpha", later...)
				w.poke(t)
				for range 3 {
					if approves != "before" {
						require.NoError(t, w.approveAll())
					}
					w.run(t, 10*time.Minute)
				}
				require.NoError(t, w.approveAll())
				w.run(t, 10*time.Minute)
				for _, c := range w.csvs() {
					require.Equal(t, v1alpha1.CSVPhaseSucceeded, c.Status.Phase, w.phases())
				}
				require.Len(t, w.csvs(), 2, "one version of each package")
				for _, pkg := range []string{"alpha", "beta"} {
					require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status(pkg).State, pkg)
				}
			})
		}
	}
}
