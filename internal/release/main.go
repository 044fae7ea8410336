// SPDX-License-Identifier: Apache-2.0

// Command release makes a commit and the tags of a version: one for each module of the repository that other
// repositories may require, all of the same version.
//
//	cd internal/release && go run . v0.1.0
//
// Nothing is pushed; it prints how. See docs/releasing.md.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: go run . VERSION, such as v0.1.0")
	}
	root, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	tags, err := release(root, args[0])
	if err != nil {
		return err
	}
	fmt.Printf("a commit and %d tags. To publish them:\n\n\tgit push --atomic origin HEAD %s\n", len(tags), strings.Join(tags, " "))
	return nil
}

// release commits the version into all go.mod files and manifests of a repository and tags the commit. It returns the
// tags.
func release(root, version string) (tags []string, err error) {
	if err := validate(root, version); err != nil {
		return nil, err
	}
	modules, err := modulesOf(root)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if m.published() {
			tags = append(tags, m.tag(version))
		}
	}
	existing, err := git(root, append([]string{"tag", "--list"}, tags...)...)
	if err != nil {
		return nil, err
	}
	if existing != "" {
		return nil, fmt.Errorf("the version has tags already: %s", strings.Join(strings.Fields(existing), ", "))
	}
	changed, err := pin(root, modules, version)
	if err != nil {
		return nil, err
	}
	manifests, err := pinImages(root, version)
	if err != nil {
		return nil, err
	}
	if changed = append(changed, manifests...); len(changed) > 0 {
		if _, err := git(root, append([]string{"commit", "--quiet", "-m", "release " + version, "--"}, changed...)...); err != nil {
			return nil, err
		}
	}
	for _, tag := range tags {
		if _, err := git(root, "tag", "-a", "-m", tag, tag); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// validate refuses what would be a mistake to publish: a version cannot be taken back.
func validate(root, version string) error {
	switch {
	case semver.Canonical(version) != version || semver.Build(version) != "":
		return fmt.Errorf("%q is no version such as v0.1.0 or v0.1.0-rc.1", version)
	case semver.Compare(semver.Major(version), "v1") > 0:
		return fmt.Errorf("%s: the module paths have no /%s at their end", version, semver.Major(version))
	}
	changes, err := git(root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("there are changes that are not committed:\n%s", changes)
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if semver.Prerelease(version) == "" && !slices.Contains(strings.Fields(string(changelog)), version) {
		return fmt.Errorf("CHANGELOG.md has no section %q: name the section Unreleased so, and begin a new one", "## "+version)
	}
	return nil
}

// git runs a command and returns what it prints, without the last line's end.
func git(dir string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = dir
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(problems.Bytes()))
	}
	return strings.TrimRight(string(output), "\n"), nil
}
