// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

// TestTheImageHoldsTheManager does what the Dockerfile says, as far as that needs no container: the command that builds
// makes a program that needs no library and knows the arguments of the Deployment.
func TestTheImageHoldsTheManager(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^RUN (.*go build .*)$`).FindSubmatch(text)
	require.NotNil(t, command)
	require.Contains(t, string(text), "\nCOPY --from=build /olm /olm\n")
	require.Contains(t, string(text), "\nENTRYPOINT [\"/olm\"]\n")
	gomod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (.*)$`).FindSubmatch(gomod)
	require.Contains(t, string(text), "FROM golang:"+string(version[1])+" AS build\n")

	binary := filepath.Join(t.TempDir(), "olm")
	build := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(string(command[1]), "-o /olm ", "-o "+binary+" ", 1))
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "GOOS=linux")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	file, err := elf.Open(binary)
	require.NoError(t, err)
	defer file.Close()
	for _, section := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, section.Type, "it needs a dynamic linker")
	}
	run := exec.CommandContext(t.Context(), "go", "run", "./cmd/olm", "--help") // the program that is for Linux may not run here
	run.Dir = ".."
	help, err := run.CombinedOutput()
	require.NoError(t, err, string(help))
	for _, folder := range overlays {
		for _, argument := range find[appsv1.Deployment](t, rendered(t, folder), "olm").Spec.Template.Spec.Containers[0].Args {
			flag, _, _ := strings.Cut(strings.TrimPrefix(argument, "-"), "=")
			require.Regexp(t, `(?m)^  `+flag+`\b`, string(help))
		}
	}
}

// TestImagesAreNamedByTheirVersions: what latest is today is not what was tested, and another tomorrow. That of opm is
// the version of operator-registry that reads what it serves and unpacks.
func TestImagesAreNamedByTheirVersions(t *testing.T) {
	gomod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	registry := regexp.MustCompile(`(?m)^\tgithub\.com/operator-framework/operator-registry (v\S+)$`).FindSubmatch(gomod)
	require.NotNil(t, registry)
	for _, folder := range overlays {
		manager := find[appsv1.Deployment](t, rendered(t, folder), "olm").Spec.Template.Spec.Containers[0]
		images := []string{manager.Image}
		for _, argument := range manager.Args {
			if flag, image, _ := strings.Cut(argument, "="); strings.HasSuffix(flag, "-image") {
				images = append(images, image)
			}
		}
		require.Len(t, images, 3)
		for _, image := range images {
			require.Regexp(t, `^[a-z./-]+:(v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?|dev)$`, image)
		}
		require.Contains(t, images, "quay.io/operator-framework/opm:"+string(registry[1]))
	}
}
