// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/command"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

// upgrade is a live cluster in which a version of an operator waits for approval.
type upgrade struct {
	*upgradetest.World
	server *apiserver.Server
	flags  []string
	plan   string
}

func newUpgrade(t *testing.T, change func(first, second *upgradetest.Bundle)) *upgrade {
	w := upgradetest.New(t, change)
	require.NoError(t, w.Cluster.Load(apiserver.Definitions()...))
	u := &upgrade{World: w, server: apiserver.New(w.Cluster), plan: w.Plan(t).Name}
	front := httptest.NewServer(u.server)
	t.Cleanup(front.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, apiserver.Kubeconfig(front.URL), 0o600))
	u.flags = []string{"--kubeconfig", file, "--cache-dir", t.TempDir(), "-n", upgradetest.Namespace}
	return u
}

// type answers what is asked, at a terminal.
func (u *upgrade) typing(t *testing.T, answers string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(answers), Out: &out, ErrOut: &errs}
	code = command.RunAtTerminal(t.Context(), append(args, u.flags...), streams, u.now(t))
	return code, out.String(), errs.String()
}

// now is the clock of the cluster.
func (u *upgrade) now(t *testing.T) func() time.Time {
	return func() (at time.Time) {
		require.NoError(t, u.server.With(func(c *fake.Cluster) error { at = c.Now(); return nil }))
		return at
	}
}

func (u *upgrade) isApproved(t *testing.T) (is bool) {
	require.NoError(t, u.server.With(func(c *fake.Cluster) error {
		p, err := olmcore.Require[*v1alpha1.InstallPlan](t.Context(), c, upgradetest.Namespace, u.plan)
		is = err == nil && p.Spec.Approved
		return err
	}))
	return is
}

func TestApproveShowsAsksAndApproves(t *testing.T) {
	u := newUpgrade(t, nil)
	question := "Approve InstallPlan ops/" + u.plan + "? [y/N] "

	for _, no := range []string{"n\n", "\n", "", "perhaps\n"} {
		code, out, errs := u.typing(t, no, "approve", u.plan)
		require.Zero(t, code, errs)
		require.Contains(t, out, "ops/vault.v2.0.0 replaces vault.v1.0.0")
		require.Contains(t, out, "registry.example.com/vault:1.0.0 -> registry.example.com/vault:2.0.0")
		require.Equal(t, question+"Nothing was written.", strings.ReplaceAll(strings.TrimSpace(errs), "\n", ""))
		require.False(t, u.isApproved(t))
	}
	u.server.Requests()
	code, _, errs := u.typing(t, "y\n", "approve", "vault")
	require.Zero(t, code, errs)
	require.Equal(t, question+"InstallPlan ops/"+u.plan+" is approved.\n", errs)
	require.True(t, u.isApproved(t))
	require.Equal(t, 1, u.server.Requests()["patch"], "nothing else is written")

	code, _, errs = u.typing(t, "y\n", "approve", u.plan)
	require.Zero(t, code, errs)
	require.Equal(t, "InstallPlan ops/"+u.plan+" is approved already.\n", errs)
}

func TestApproveNeedsAPersonToAsk(t *testing.T) {
	u := newUpgrade(t, nil)
	code, out, errs := run(t, "y\n", append([]string{"approve", "vault"}, u.flags...)...)
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Equal(t, "error: no person can be asked, as the input is no terminal: say --yes, or --dry-run\n", errs)
	require.False(t, u.isApproved(t))

	code, _, errs = run(t, "", append([]string{"approve", "vault", "--dry-run", "--exit-code"}, u.flags...)...)
	require.Equal(t, 1, code, errs)
	require.False(t, u.isApproved(t))

	code, _, errs = run(t, "", append([]string{"approve", "vault", "--yes"}, u.flags...)...)
	require.Zero(t, code, errs)
	require.True(t, u.isApproved(t))
}

// TestAPlanThatChangedIsShownAgain: what is approved is what was shown.
func TestAPlanThatChangedIsShownAgain(t *testing.T) {
	for _, tt := range []struct{ answers, on string }{{"y\ny\n", "patch"}, {"--yes", "patch"}, {"y\ny\n", "get"}} {
		u, answers, gets := newUpgrade(t, nil), tt.answers, 0
		once := sync.Once{}
		u.server.Authorize = func(what authorizationv1.ResourceAttributes) bool {
			isPlan := what.Resource == "installplans" && what.Verb == tt.on
			if isPlan {
				gets++
			}
			if isPlan && (tt.on == "patch" || gets == 2) { // the first get is that of the preview
				once.Do(func() {
					require.NoError(t, fake.Edit(u.Cluster, upgradetest.Namespace, u.plan, func(p *v1alpha1.InstallPlan) {
						metav1.SetMetaDataAnnotation(&p.ObjectMeta, "changed", "meanwhile")
					}))
				})
			}
			return true
		}
		args := []string{"approve", "vault"}
		if answers == "--yes" {
			args = append(args, answers)
		}
		code, out, errs := u.typing(t, answers, args...)
		require.Equal(t, 2, strings.Count(out, "ops/vault.v2.0.0 replaces vault.v1.0.0"))
		require.Contains(t, errs, "has changed since it was shown. This is how it is now:\n")
		if answers == "--yes" {
			require.Equal(t, 2, code)
			require.Contains(t, errs, "error: it is not approved: run it again if this is what you want\n")
		} else {
			require.Zero(t, code, errs)
		}
		require.Equal(t, answers != "--yes", u.isApproved(t))
	}
}

// TestYesApprovesNoPlanThatSomethingStandsInTheWayOf: a person may, who was asked.
func TestYesApprovesNoPlanThatSomethingStandsInTheWayOf(t *testing.T) {
	u := newUpgrade(t, func(_, second *upgradetest.Bundle) {
		second.CSV.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "missing.example.com", Version: "v1", Kind: "Missing"}}
	})
	if u.plan == "" {
		t.Fatal("there is no plan")
	}
	code, out, errs := u.typing(t, "", "approve", u.plan, "--yes")
	require.Contains(t, out, "It would not succeed: ")
	require.Equal(t, 2, code)
	require.Equal(t, "error: it is not approved: something stands in its way; without --yes you are asked\n", errs)
	require.False(t, u.isApproved(t))
}

// TestTheJSONIsThatOfThePreview, of a live cluster and of files.
func TestTheJSONIsThatOfThePreview(t *testing.T) {
	u := newUpgrade(t, nil)
	options := u.OLM.Options
	options.KubernetesVersion = apiserver.Version
	want, err := preview.Run(context.Background(), u.Cluster, u.Plan(t), u.Cluster.Now(), options)
	require.NoError(t, err)
	var items []any
	for _, o := range u.Cluster.Objects() {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		items = append(items, m)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	require.NoError(t, err)
	now := u.Cluster.Now().Format(time.RFC3339)
	for _, output := range []string{"json", "yaml"} {
		for _, stdin := range []string{"", string(list)} {
			args := append([]string{"approve", "vault", "--dry-run", "-o", output}, u.flags...)
			if stdin != "" {
				args = []string{"approve", "vault", "--dry-run", "-o", output, "-f", "-", "--complete", "--now", now}
			}
			code, out, errs := run(t, stdin, args...)
			require.Zero(t, code, errs)
			var got preview.Preview
			require.NoError(t, yaml.Unmarshal([]byte(out), &got))
			require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreUnexported(preview.Definition{}), cmpopts.IgnoreFields(preview.Definition{}, "Judged"), cmpopts.IgnoreFields(preview.Preview{}, "NotRead", "SchemaChanges")))
		}
	}
}

// controlled lets the controllers go on until it is stopped.
func (u *upgrade) controlled(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = u.server.With(func(*fake.Cluster) error { return u.Driver.RunUntilIdle(ctx, time.Minute) })
			time.Sleep(time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestRollbackGoesTheWayBack: the upgrade has failed, as its image is not there.
func TestRollbackGoesTheWayBack(t *testing.T) {
	u := newUpgrade(t, breakSecond)
	u.Cluster.Image(noImage).Break("ImagePullBackOff")
	u.Approve(t)
	require.NotEqual(t, v1alpha1.CSVPhaseSucceeded, u.Phase(upgradetest.Second))

	u.server.Requests()
	code, out, errs := u.typing(t, "n\n", "rollback", "vault")
	require.Zero(t, code, errs)
	require.Contains(t, out, "Subscription ops/vault: from vault.v2.0.0 back to vault.v1.0.0\n  1. ")
	require.Equal(t, "Go back to vault.v1.0.0? [y/N] Nothing was written.\n", errs)
	for verb := range u.server.Requests() {
		require.Contains(t, []string{"discovery", "get", "list"}, verb)
	}

	stop := u.controlled(t)
	code, _, errs = u.typing(t, "y\n", "rollback", "vault")
	stop()
	require.Zero(t, code, errs)
	require.True(t, strings.HasSuffix(errs, "\nSubscription ops/vault is back at vault.v1.0.0.\n"), errs)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, u.Phase(upgradetest.First))
	require.Empty(t, u.Phase(upgradetest.Second))
}

// TestAStepThatTakesLongIsSaid: no controller runs, so that what was deleted stays.
func TestAStepThatTakesLongIsSaid(t *testing.T) {
	u := newUpgrade(t, breakSecond)
	u.Cluster.Image(noImage).Break("ImagePullBackOff")
	u.Approve(t)
	code, _, errs := u.typing(t, "", "rollback", "vault", "--yes", "--timeout", "15ms")
	require.Equal(t, 2, code)
	const waits = "wait until ClusterServiceVersion vault.v2.0.0 is gone"
	require.True(t, strings.HasSuffix(errs, waits+"\nerror: this took more than 15ms: run it again to go on: "+waits+"\n"), errs)
	require.NotEmpty(t, u.Phase(upgradetest.Second))
}

// TestRollbackIsStoppedAndGoneOnWith: at every write of it, whether the version before waits still or is gone. The
// version to go back to is not named again.
func TestRollbackIsStoppedAndGoneOnWith(t *testing.T) {
	for name, change := range map[string]func(first, second *upgradetest.Bundle){"failed": breakSecond, "regretted": nil} {
		t.Run(name, func(t *testing.T) {
			u := newUpgrade(t, change)
			u.Cluster.Image(noImage).Break("ImagePullBackOff")
			u.Approve(t)
			u.flags = append(u.flags, "--catalog", "olm/community=../../testdata/upgrade-catalog.yaml")
			var stops func()
			u.server.Authorize = func(what authorizationv1.ResourceAttributes) bool {
				isWrite := what.Verb == "patch" || what.Verb == "update" || what.Verb == "delete"
				if isWrite && stops != nil {
					stops()
				}
				return true
			}
			stopped := 0
			for code := 2; code != 0; {
				stop := u.controlled(t)
				ctx, cancel := context.WithCancel(t.Context())
				var out, errs bytes.Buffer
				if stopped < 3 {
					stops = cancel
				}
				streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
				code = command.RunAtTerminal(ctx, append([]string{"rollback", "vault", "--yes"}, u.flags...), streams, u.now(t))
				stops = nil
				cancel()
				stop()
				if code != 0 {
					stopped++
					require.Less(t, stopped, 9, errs.String())
					require.Contains(t, errs.String(), "context canceled")
				}
			}
			require.NotZero(t, stopped)
			require.Equal(t, v1alpha1.CSVPhaseSucceeded, u.Phase(upgradetest.First))
			require.Empty(t, u.Phase(upgradetest.Second))
		})
	}
}

func TestWhatIsWrongWithWriting(t *testing.T) {
	u := newUpgrade(t, nil)
	for args, want := range map[string]string{
		"approve vault -f " + worldFile:              "approve writes to a live cluster, not to files: say --dry-run",
		"rollback vault -f " + worldFile:             "rollback writes to a live cluster, not to files: say --dry-run",
		"approve vualt --dry-run":                    `there is no Subscription "vualt" in namespace ops: did you mean "vault"?`,
		"approve csv/vault.v1.0.0 --dry-run":         "clusterserviceversions.operators.coreos.com were not read: the input has none",
		"approve ip/vault --dry-run":                 `there is no InstallPlan "vault" in namespace ops`,
		"approve vault --dry-run --yes":              "if any flags in the group [dry-run yes] are set none of the others can be; [dry-run yes] were all set",
		"approve":                                    "approve takes an InstallPlan or a Subscription, and 0 arguments were given",
		"approve mirror --dry-run -f " + worldFile:   "there is no InstallPlan of Subscription broken/mirror: kubectl olm why mirror says why",
		"rollback vault --to vault.v9.0.0 --dry-run": "no way back is advised: ",
		"rollback vualt --dry-run":                   `there is no Subscription "vualt" in namespace ops: did you mean "vault"?`,
	} {
		fields := strings.Fields(args)
		if !strings.Contains(args, "-f ") {
			fields = append(fields, u.flags...)
		}
		code, _, errs := run(t, "", fields...)
		require.Equal(t, 2, code, args)
		require.Contains(t, errs, "error: "+want, args)
	}
}

// TestWhatAnUpgradeBringsIsShownSafely: authors of operators write images and rules.
func TestWhatAnUpgradeBringsIsShownSafely(t *testing.T) {
	u := newUpgrade(t, func(_, second *upgradetest.Bundle) {
		strategy := &second.CSV.Spec.InstallStrategy.StrategySpec
		strategy.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = hostile
		strategy.Permissions[0].Rules = append(strategy.Permissions[0].Rules, rbacv1.PolicyRule{APIGroups: []string{hostile}, Resources: []string{hostile}, Verbs: []string{"get"}})
	})
	for _, output := range []string{"table", "wide", "json", "html"} {
		code, out, errs := u.typing(t, "n\n", "approve", "vault", "-o", output)
		require.Zero(t, code, errs)
		require.Contains(t, out, "gnp.exe")
		if output == "html" {
			require.NotContains(t, out, "<script")
		}
		for _, r := range out + errs {
			require.True(t, r == '\n' || unicode.IsPrint(r), "%s prints %U", output, r)
		}
	}
}
