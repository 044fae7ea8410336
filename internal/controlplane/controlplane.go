// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real control plane for tests: etcd, kube-apiserver and kube-controller-manager, as
// child processes on loopback, with OLM's CRDs. No container runtime and no privileges are needed. Kubelets and the
// scheduler are played by Nodes, what the API server calls by Network.
//
// The three are one binary, which the script build makes when it is missing.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Start and stop are waited for this long: the machine may be busy.
const (
	startTimeout = 3 * time.Minute
	stopTimeout  = 20 * time.Second
)

// ControlPlane is a running one.
type ControlPlane struct {
	// Config connects as a member of system:masters.
	Config *rest.Config

	dir        string // of this control plane alone
	env        *envtest.Environment
	controller *process
}

// Options of a control plane; the zero value has the real controllers, and nodes that count as failed after seconds.
type Options struct {
	// NodeMonitorGrace is how long a node may be silent; 0: 8 s, which a busy machine can keep.
	NodeMonitorGrace time.Duration
}

// ErrNotBuilt says that the binary is missing.
var ErrNotBuilt = errors.New("the control plane's binary is missing: build it first with internal/controlplane/build (7 to 15 minutes on two cores, once)")

// Binary returns the path of the control plane's binary; an error that wraps ErrNotBuilt when it was not built.
func Binary() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	out, err := exec.Command("bash", filepath.Join(filepath.Dir(file), "build"), "-n").Output()
	if err != nil {
		return "", fmt.Errorf("internal/controlplane/build -n: %w", err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	return path, nil
}

// Start starts a control plane; Stop ends it. Its processes also end by themselves when this process does, in whatever
// way.
func Start(o Options) (*ControlPlane, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "olmcore-controlplane-")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{dir: dir}
	if err := c.start(binary, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(binary string, o Options) error {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if err := os.Symlink(binary, filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"audit-policy.yaml": auditPolicy, "egress.yaml": fmt.Sprintf(egressSelector, c.path("network"))} {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	c.env = &envtest.Environment{
		BinaryAssetsDirectory:    c.dir,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
		CRDs:                     definitions(),
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: 2 * time.Minute},
	}
	c.env.ControlPlane.Etcd = &envtest.Etcd{Path: c.path("etcd")}
	server := c.env.ControlPlane.GetAPIServer()
	server.Path = c.path("kube-apiserver")
	server.Configure().
		// envtest switches ServiceAccount off; one must be named to have it on.
		Set("disable-admission-plugins", "DefaultStorageClass").
		// Some distributions have it: who sets an owner reference needs rights on both objects.
		Set("enable-admission-plugins", "OwnerReferencesPermissionEnforcement").
		Set("default-not-ready-toleration-seconds", "1").
		Set("default-unreachable-toleration-seconds", "1").
		Set("egress-selector-config-file", c.path("egress.yaml")).
		Set("audit-policy-file", c.path("audit-policy.yaml")).
		Set("audit-log-path", c.path("audit.log")).
		Set("audit-log-mode", "blocking")
	if err := c.proxyAs("front-proxy", server); err != nil {
		return err
	}
	var err error
	if c.Config, err = c.env.Start(); err != nil {
		return fmt.Errorf("start etcd and kube-apiserver: %w", err)
	}
	return c.startController(o)
}

func definitions() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.Operator(), crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	}
}

// startController starts the controller manager and waits until it is healthy.
func (c *ControlPlane) startController(o Options) error {
	grace := o.NodeMonitorGrace
	if grace == 0 {
		grace = 8 * time.Second
	}
	for name, data := range map[string][]byte{"kubeconfig": c.env.KubeConfig, "ca.crt": c.Config.CAData} {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return err
		}
	}
	certificates := c.env.ControlPlane.GetAPIServer().CertDir
	var err error
	c.controller, err = startProcess(c.path("kube-controller-manager"), c.path("controller.log"), func(port int) []string {
		return []string{
			"--kubeconfig=" + c.path("kubeconfig"),
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + c.dir,
			"--authorization-always-allow-paths=/healthz",
			"--leader-elect=false", "--use-service-account-credentials=false",
			"--kube-api-qps=200", "--kube-api-burst=400",
			"--root-ca-file=" + c.path("ca.crt"),
			"--service-account-private-key-file=" + filepath.Join(certificates, "sa-signer.key"),
			"--controllers=node-lifecycle-controller,taint-eviction-controller,garbage-collector-controller,pod-garbage-collector-controller," +
				"disruption-controller,job-controller,deployment-controller,replicaset-controller,serviceaccount-controller,namespace-controller," +
				"endpointslice-controller,clusterrole-aggregation-controller",
			"--node-monitor-period=500ms", "--node-monitor-grace-period=" + grace.String(), "--node-startup-grace-period=" + (grace + time.Second).String(),
			"--node-eviction-rate=10", "--secondary-node-eviction-rate=10", "--concurrent-gc-syncs=5",
		}
	})
	return err
}

// Stop ends the processes, in order, and removes what they wrote.
func (c *ControlPlane) Stop() error {
	var failed []error
	if c.controller != nil {
		failed = append(failed, c.controller.stop())
	}
	if c.env != nil {
		failed = append(failed, c.env.Stop())
	}
	return errors.Join(append(failed, os.RemoveAll(c.dir))...)
}

// As connects as a user of that name, a member of system:masters: the audit log tells who did what.
func (c *ControlPlane) As(name string) (*rest.Config, error) {
	user, err := c.env.ControlPlane.AddUser(envtest.User{Name: name, Groups: []string{"system:masters"}}, rest.CopyConfig(c.Config))
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// Pids are the processes of the control plane.
func (c *ControlPlane) Pids(ctx context.Context) ([]int, error) { return children(ctx, c.dir) }

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }
