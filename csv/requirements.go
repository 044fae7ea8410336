// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"strings"

	semver "github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

const (
	reqPresent      = v1alpha1.RequirementStatusReasonPresent
	reqNotPresent   = v1alpha1.RequirementStatusReasonNotPresent
	reqNotSatisfied = v1alpha1.RequirementStatusReasonPresentNotSatisfied
	reqNotAvailable = v1alpha1.RequirementStatusReasonNotAvailable

	// The API types have no constants for these two.
	reqDeploymentFound    v1alpha1.StatusReason = "DeploymentFound"
	reqDeploymentNotFound v1alpha1.StatusReason = "DeploymentNotFound"
)

func isMet(s v1alpha1.StatusReason) bool { return s == reqPresent || s == reqDeploymentFound }

// requirements evaluates everything that the CSV needs, in a fixed order: the
// Kubernetes version, CRDs by name, required APIServices, owned APIServices,
// native APIs in the order of the spec, ServiceAccounts by name. All are
// evaluated, met or not.
func requirements(in *Input) (met bool, all []v1alpha1.RequirementStatus) {
	all = append(all, kubernetesRequirement(in)...)
	all = append(all, crdRequirements(in)...)
	all = append(all, requiredAPIServices(in)...)
	all = append(all, ownedAPIServices(in)...)
	all = append(all, nativeAPIs(in)...)
	all = append(all, permissionRequirements(in)...)
	unmet := func(r v1alpha1.RequirementStatus) bool { return !isMet(r.Status) }
	return !slices.ContainsFunc(all, unmet), all
}

func kubernetesRequirement(in *Input) []v1alpha1.RequirementStatus {
	c := in.ClusterServiceVersion
	if c.Spec.MinKubeVersion == "" {
		return nil
	}
	status, message := judgeKubernetesVersion(c.Spec.MinKubeVersion, in.KubernetesVersion)
	return []v1alpha1.RequirementStatus{{
		Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion, Kind: v1alpha1.ClusterServiceVersionKind,
		Name: c.Name, Status: status, Message: message,
	}}
}

func judgeKubernetesVersion(minimum, server string) (v1alpha1.StatusReason, string) {
	if server == "" {
		return reqNotSatisfied, "Server version discovery error"
	}
	release, _, _ := strings.Cut(server, "-")
	have, err := parseKubernetesVersion(release)
	if err != nil {
		return reqNotSatisfied, "Server version parsing error"
	}
	want, err := parseKubernetesVersion(minimum)
	if err != nil {
		return reqNotSatisfied, "CSV version parsing error"
	}
	if want.GT(have) {
		return reqNotSatisfied, fmt.Sprintf("CSV version requirement not met: minKubeVersion (%s) > server version (%s)", minimum, have)
	}
	return reqPresent, fmt.Sprintf("CSV minKubeVersion (%s) less than server version (%s)", minimum, server)
}

// parseKubernetesVersion accepts what semver does, one leading v, and a version
// without its patch number.
func parseKubernetesVersion(s string) (semver.Version, error) {
	s = strings.TrimPrefix(s, "v")
	core := strings.IndexAny(s, "-+")
	if core < 0 {
		core = len(s)
	}
	if strings.Count(s[:core], ".") == 1 {
		s = s[:core] + ".0" + s[core:]
	}
	return semver.Parse(s)
}

// kubernetesMet is judgeKubernetesVersion for the converged case: plain versions
// are compared without making new values.
func kubernetesMet(minimum, server string) bool {
	if minimum == "" {
		return true
	}
	release, _, _ := strings.Cut(server, "-")
	want, ok1 := plainVersion(minimum)
	have, ok2 := plainVersion(release)
	if ok1 && ok2 {
		return slices.Compare(want[:], have[:]) <= 0
	}
	status, _ := judgeKubernetesVersion(minimum, server)
	return isMet(status)
}

// plainVersion reads the three numbers of a version whose pre-release and build
// parts decide nothing: a server's are cut off, and "-0" is the lowest of all.
func plainVersion(s string) (numbers [3]int, ok bool) {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "v"), "-0")
	for i := range numbers {
		part, rest, more := strings.Cut(s, ".")
		if more != (i < 2) || part == "" || len(part) > 9 || len(part) > 1 && part[0] == '0' {
			return numbers, false
		}
		for _, digit := range []byte(part) {
			if digit < '0' || digit > '9' {
				return numbers, false
			}
			numbers[i] = 10*numbers[i] + int(digit-'0')
		}
		s = rest
	}
	return numbers, true
}
